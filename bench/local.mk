# Figures, printed as ratios in one run: `make bench`. No test reads a stopwatch.
#
# dmutex-bench has one file in work/ for each workload; the workload names the two helpers, which are linked to nothing.
bench_programs = bench/dmutex-bench bench/footprint bench/preload_pairs

bench_common = \
    bench/bench.c bench/bench.h \
    bench/grant.c bench/grant.h \
    bench/home.c bench/home.h \
    bench/server.c bench/server.h

bench_dmutex_bench_SOURCES = \
    $(bench_common) \
    bench/contest.c bench/contest.h \
    bench/crowd.c bench/crowd.h \
    bench/dmutex-bench.c \
    bench/held.c bench/held.h \
    bench/own.c bench/own.h \
    bench/report.c bench/report.h \
    bench/workload.c bench/workload.h \
    bench/work/broadcast.c \
    bench/work/conditions.c \
    bench/work/dead.c \
    bench/work/handoff.c \
    bench/work/kept.c \
    bench/work/memory.c \
    bench/work/names.c \
    bench/work/preload.c \
    bench/work/private.c \
    bench/work/processes.c \
    bench/work/recursive.c \
    bench/work/renewals.c \
    bench/work/threads.c \
    bench/work/uncontended.c
bench_dmutex_bench_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)
bench_dmutex_bench_LDADD = libdmutex/libredis.la libdmutex/libdmutex.la $(HIREDIS_LIBS)
bench_footprint_LDADD =
bench_preload_pairs_LDADD =

EXTRA_PROGRAMS += $(bench_programs)
CLEANFILES += $(bench_programs)

bench: $(bench_programs)
	@bench/dmutex-bench

.PHONY: bench
