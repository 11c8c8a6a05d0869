# Figures, printed as ratios in one run: `make bench`. No test reads a stopwatch.
#
# A new one is a line here, bench_NAME_SOURCES and bench_NAME_LDADD. Those that compare with the
# library's own scripts take them from libredis.
bench_programs = \
    bench/pair \
    bench/handoff

bench_common = bench/bench.c bench/bench.h
bench_own = bench/own.c bench/own.h
bench_libs = libdmutex/libdmutex.la $(HIREDIS_LIBS)

bench_pair_SOURCES = bench/pair.c $(bench_own) $(bench_common)
bench_pair_LDADD = libdmutex/libredis.la $(bench_libs)

bench_handoff_SOURCES = \
    bench/crowd.c \
    bench/crowd.h \
    bench/grant.c \
    bench/grant.h \
    bench/handoff.c \
    $(bench_common)
bench_handoff_LDADD = $(bench_libs)

EXTRA_PROGRAMS += $(bench_programs)
CLEANFILES += $(bench_programs)

bench: $(bench_programs)
	@for program in $(bench_programs); do ./$$program || exit 1; echo; done

.PHONY: bench
