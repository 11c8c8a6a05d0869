# Figures, printed as ratios in one run: `make bench`. No test reads a stopwatch.
#
# A new one is a line here, and bench_NAME_LDADD = libdmutex/libdmutex.la
bench_programs =

EXTRA_PROGRAMS += $(bench_programs)
CLEANFILES += $(bench_programs)

bench: $(bench_programs)
	@for program in $(bench_programs); do ./$$program || exit 1; done

.PHONY: bench
