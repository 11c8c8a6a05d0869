# Figures, printed as ratios in one run: `make bench`. No test reads a stopwatch.
#
# dmutex-bench has one file in workloads/ for each workload. The workloads run the two helpers, which are linked to libc only.
bench_programs = bench/footprint bench/preload_pairs

bench_common = \
    bench/bench.c bench/bench.h \
    bench/asked.c bench/asked.h \
    bench/etcd.c \
    bench/grant.c bench/grant.h \
    bench/home.c bench/home.h \
    bench/own.c bench/own.h \
    bench/redis.c \
    bench/server.c bench/server.h \
    bench/store.c bench/store.h
bench_cppflags = $(AM_CPPFLAGS) -I$(top_srcdir)
bench_libs = libdmutex/libredis.la libdmutex/libdmutex.la $(HIREDIS_LIBS)
if HAVE_POSTGRES
bench_common += bench/postgres.c
bench_cppflags += -DBENCH_POSTGRES $(LIBPQ_CFLAGS)
bench_libs += libdmutex/libspawn.la $(LIBPQ_LIBS)
endif
bench_libs += libdmutex/libetcd.la libdmutex/libbase.la

bench_dmutex_bench_SOURCES = \
    $(bench_common) \
    bench/contest.c bench/contest.h \
    bench/crowd.c bench/crowd.h \
    bench/distance.c bench/distance.h \
    bench/dmutex-bench.c \
    bench/held.c bench/held.h \
    bench/report.c bench/report.h \
    bench/runner.c bench/runner.h \
    bench/secured.c bench/secured.h \
    bench/workload.c bench/workload.h \
    bench/workloads/broadcast.c \
    bench/workloads/conditions.c \
    bench/workloads/dead.c \
    bench/workloads/handoff.c \
    bench/workloads/heap.c \
    bench/workloads/kept.c \
    bench/workloads/memory.c \
    bench/workloads/names.c \
    bench/workloads/preload.c \
    bench/workloads/private.c \
    bench/workloads/processes.c \
    bench/workloads/quorum.c \
    bench/workloads/recursive.c \
    bench/workloads/renewals.c \
    bench/workloads/threads.c \
    bench/workloads/tls.c \
    bench/workloads/uncontended.c \
    bench/workloads/waiters.c
bench_dmutex_bench_CPPFLAGS = $(bench_cppflags)
bench_dmutex_bench_LDADD = $(bench_libs) $(LIBSSL_LIBS)
bench/dmutex_bench-secured.$(OBJEXT): private AM_CFLAGS += $(LIBSSL_CFLAGS)
bench_bench_peer_SOURCES = bench/peers/c/adapter.c $(bench_common)
bench_bench_peer_CPPFLAGS = $(bench_cppflags)
bench_bench_peer_LDADD = $(bench_libs)
bench_footprint_LDADD =
bench_preload_pairs_LDADD =

# tests/tools/test_dmutex_bench.sh and test_bench_peers.sh run them.
check_PROGRAMS += bench/dmutex-bench bench/bench-peer
EXTRA_PROGRAMS += $(bench_programs)
CLEANFILES += $(bench_programs)

bench: bench/dmutex-bench bench/footprint bench/preload_pairs
	@bench/dmutex-bench

# Measures, and redraws the pictures in the repository.
plots: bench/dmutex-bench
	@bench/dmutex-bench --json --seconds 1 --rounds 3 --place apart processes >bench/processes.json
	@$(srcdir)/bench/plot $(srcdir)/doc/img <bench/processes.json

CLEANFILES += bench/processes.json

# The library compared with other locks: bench/peers/README.md.
bench-peer: bench/bench-peer

EXTRA_DIST += \
    bench/plot \
    bench/peers/README.md \
    bench/peers/compare \
    bench/peers/fetch \
    bench/peers/measure.py \
    bench/peers/page.py \
    bench/peers/servers.py \
    bench/peers/go/build bench/peers/go/locks.go bench/peers/go/main.go \
    bench/peers/java/Adapter.java bench/peers/java/Locks.java bench/peers/java/build bench/peers/java/pom.xml \
    bench/peers/node/adapter.mjs bench/peers/node/build bench/peers/node/package.json \
    bench/peers/python/adapter.py bench/peers/python/build \
    bench/peers/rust/Cargo.toml bench/peers/rust/build bench/peers/rust/src/main.rs

.PHONY: bench bench-peer plots
