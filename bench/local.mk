# Figures, printed as ratios in one run: `make bench`. No test reads a stopwatch.
#
# A new benchmark is a line here, bench_NAME_SOURCES and bench_NAME_LDADD. Benchmarks that compare with
# the library's own scripts take the scripts from libredis.
bench_programs = \
    bench/pair \
    bench/handoff \
    bench/held \
    bench/threads \
    bench/relock \
    bench/cond \
    bench/dead \
    bench/private \
    bench/preload

# linked to nothing: bench/held runs the program to measure the library's memory, bench/preload the module's cost
bench_helpers = bench/footprint bench/preload_pairs

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

bench_held_SOURCES = bench/held.c $(bench_common)
bench_held_LDADD = $(bench_libs)
bench_footprint_LDADD =

bench_private_SOURCES = bench/private.c $(bench_common)
bench_private_LDADD = $(bench_libs)

bench_preload_SOURCES = bench/preload.c $(bench_common)
bench_preload_LDADD = $(bench_libs)
bench_preload_pairs_LDADD =

bench_threads_SOURCES = bench/threads.c $(bench_own) $(bench_common)
bench_threads_LDADD = libdmutex/libredis.la $(bench_libs)

bench_relock_SOURCES = bench/relock.c $(bench_own) $(bench_common)
bench_relock_LDADD = libdmutex/libredis.la $(bench_libs)

bench_cond_SOURCES = bench/cond.c $(bench_own) $(bench_common)
bench_cond_LDADD = libdmutex/libredis.la $(bench_libs)

bench_dead_SOURCES = bench/dead.c $(bench_common)
bench_dead_LDADD = $(bench_libs)

EXTRA_PROGRAMS += $(bench_programs) $(bench_helpers)
CLEANFILES += $(bench_programs) $(bench_helpers)

bench: $(bench_programs) $(bench_helpers)
	@for program in $(bench_programs); do ./$$program || exit 1; echo; done

.PHONY: bench
