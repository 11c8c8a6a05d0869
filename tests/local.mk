# The tests: `make check` runs all of TESTS.
#
# A new test is a line in its group, and its source has the program's name.  Helpers of several tests are in a library
# of the folder, and the libraries of a group are said once, for all its programs, by a variable of make's that these
# targets alone have:
#
#     $(group): private LDADD = ...       what a program is linked with, instead of LDADD below
#     $(group): ...                       the same libraries again, so that a change links the program anew
#
# A test without such a group is linked to tests/lib and the shared library, as a user's program is.  A test of a part
# is linked up to the part's layer instead, so that what it tests cannot call upward.

# ---------------------------------------------------------------------------
# Groups, one folder each
# ---------------------------------------------------------------------------
# one part, alone: no server, no other process
unit_base_tests = \
    tests/unit/test_bytes \
    tests/unit/test_clean \
    tests/unit/test_clock \
    tests/unit/test_descriptor \
    tests/unit/test_error \
    tests/unit/test_ident \
    tests/unit/test_log \
    tests/unit/test_order
unit_core_tests = \
    tests/unit/test_hold \
    tests/unit/test_hold_cond \
    tests/unit/test_hold_held \
    tests/unit/test_hold_phases \
    tests/unit/test_hold_quorum \
    tests/unit/test_hold_return \
    tests/unit/test_hold_store \
    tests/unit/test_hold_walk \
    tests/unit/test_line \
    tests/unit/test_quorum_attempt \
    tests/unit/test_quorum_held \
    tests/unit/test_tenure
unit_store_tests = \
    tests/unit/test_url \
    tests/unit/test_url_cluster \
    tests/unit/test_url_etcd \
    tests/unit/test_url_memcached \
    tests/unit/test_url_mariadb \
    tests/unit/test_url_postgres \
    tests/unit/test_url_quorum \
    tests/unit/test_url_sentinel \
    tests/unit/test_url_zookeeper \
    tests/unit/test_ask \
    tests/unit/test_verdict
unit_registers_tests = \
    tests/unit/test_apply \
    tests/unit/test_apply_doubt \
    tests/unit/test_apply_losses \
    tests/unit/test_apply_orders \
    tests/unit/test_apply_shared \
    tests/unit/test_apply_wakeups \
    tests/unit/test_apply_walk \
    tests/unit/test_errand \
    tests/unit/test_mark \
    tests/unit/test_reg_keys \
    tests/unit/test_session \
    tests/unit/test_sweep \
    tests/unit/test_values \
    tests/unit/test_versions \
    tests/unit/test_watched
unit_link_tests = \
    tests/unit/test_command \
    tests/unit/test_identify \
    tests/unit/test_pipe \
    tests/unit/test_race \
    tests/unit/test_retry
unit_redis_tests = \
    tests/unit/test_cluster_nodes \
    tests/unit/test_council \
    tests/unit/test_file \
    tests/unit/test_greeting \
    tests/unit/test_keys \
    tests/unit/test_posting \
    tests/unit/test_reader \
    tests/unit/test_reply \
    tests/unit/test_slots \
    tests/unit/test_vouchers
unit_etcd_tests = \
    tests/unit/test_etcd_http \
    tests/unit/test_etcd_json
unit_memcached_tests = \
    tests/unit/test_memcached_answer
unit_zookeeper_tests = tests/unit/test_zookeeper
unit_api_tests = \
    tests/unit/test_conffile \
    tests/unit/test_metrics \
    tests/unit/test_outside \
    tests/unit/test_own_signal \
    tests/unit/test_pacing \
    tests/unit/test_place \
    tests/unit/test_stats
unit_tests = \
    $(unit_base_tests) $(unit_core_tests) $(unit_store_tests) $(unit_registers_tests) \
    $(unit_link_tests) $(unit_redis_tests) $(unit_etcd_tests) $(unit_memcached_tests) $(unit_zookeeper_tests) $(unit_api_tests)
$(unit_base_tests): private LDADD = $(test_libs) libdmutex/libconfig.la $(up_to_base)
$(unit_core_tests): private LDADD = $(test_libs) $(up_to_core)
$(unit_store_tests): private LDADD = $(test_libs) $(up_to_store)
$(unit_registers_tests): private LDADD = $(test_libs) $(up_to_registers)
$(unit_link_tests): private LDADD = $(test_libs) $(up_to_link)
$(unit_redis_tests): private LDADD = $(test_libs) $(up_to_redis)
$(unit_etcd_tests): private LDADD = $(test_libs) libdmutex/libetcd.la libdmutex/libregisters.la $(up_to_link)
$(unit_memcached_tests): private LDADD = $(test_libs) libdmutex/libmemcached.la libdmutex/libregisters.la $(up_to_link)
$(unit_zookeeper_tests): private LDADD = $(test_libs) libdmutex/libzookeeper.la libdmutex/libregisters.la $(up_to_link)
$(unit_api_tests): private LDADD = $(test_libs) $(up_to_api)
$(unit_registers_tests): $(up_to_registers)
$(unit_tests): $(up_to_api)
tests_unit_test_metrics_LDFLAGS = $(AM_LDFLAGS) \
    -Wl,--wrap=dm_clock_boot_ns \
    -Wl,--wrap=dm_alarm_set \
    -Wl,--wrap=dm_runtime_count
tests_unit_test_pacing_LDFLAGS = $(AM_LDFLAGS) \
    -Wl,--wrap=dm_clock_boot_ns \
    -Wl,--wrap=dm_alarm_reset \
    -Wl,--wrap=dm_alarm_set
tests_unit_test_race_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=getaddrinfo
tests_unit_test_url_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=free -Wl,--wrap=__ctype_b_loc
EXTRA_DIST += tests/unit/attempts.h tests/unit/hold_clock.h tests/unit/name_steps.h tests/unit/names.h \
    tests/unit/random.h tests/unit/search.h tests/unit/url_parse.h tests/unit/valgrind.supp

# the driver of PostgreSQL, on a server of its own; without the shared library
if HAVE_POSTGRES
postgres_tests = \
    tests/registers/test_postgres \
    tests/registers/test_postgres_forks \
    tests/registers/test_postgres_input \
    tests/registers/test_postgres_suite
$(postgres_tests): private LDADD = tests/registers/libpg.la tests/registers/libasker.la libdmutex/libpostgres-driver.la libdmutex/libregisters.la $(test_libs) $(up_to_api)
$(postgres_tests): tests/registers/libpg.la tests/registers/libasker.la tests/registers/libdriver.la libdmutex/libpostgres-driver.la $(up_to_api)
check_LTLIBRARIES += tests/registers/libpg.la
tests_registers_libpg_la_CFLAGS = $(AM_CFLAGS) $(LIBPQ_CFLAGS)
tests_registers_libpg_la_SOURCES = \
    tests/registers/pgserver.c \
    tests/registers/pgserver.h
tests_registers_test_postgres_CFLAGS = $(AM_CFLAGS) $(LIBPQ_CFLAGS)
tests_registers_test_postgres_SOURCES = tests/registers/test_postgres.c tests/registers/postgres.h
tests_registers_test_postgres_input_CFLAGS = $(AM_CFLAGS) $(LIBPQ_CFLAGS)
tests_registers_test_postgres_input_SOURCES = tests/registers/test_postgres_input.c tests/registers/postgres.h
tests_registers_test_postgres_forks_CFLAGS = $(AM_CFLAGS) $(LIBPQ_CFLAGS)
tests_registers_test_postgres_forks_SOURCES = tests/registers/test_postgres_forks.c tests/registers/forks.c tests/registers/forks.h
tests_registers_test_postgres_forks_LDADD = tests/registers/libprocess.la tests/registers/libmemory.la $(LDADD)
tests_registers_test_postgres_suite_CFLAGS = $(AM_CFLAGS) $(LIBPQ_CFLAGS)
tests_registers_test_postgres_suite_LDADD = tests/registers/libdriver.la $(LDADD)

# the whole library, and the tools, on PostgreSQL
on_postgres_tests = \
    tests/postgres/test_calls \
    tests/postgres/test_backups \
    tests/postgres/test_conditions \
    tests/postgres/test_faults \
    tests/postgres/test_module \
    tests/postgres/test_mutexes \
    tests/postgres/test_testing \
    tests/postgres/test_tools
$(on_postgres_tests): private LDADD = tests/tools/libtool.la tests/registers/libpg.la $(LIBPQ_LIBS) $(test_libs) libdmutex/libdmutex.la
$(on_postgres_tests): tests/tools/libtool.la tests/registers/libpg.la tests/chaos/skew.la $(preload_test_libs) libdmutex/libdmutex.la tools/dmutex$(EXEEXT) $(uninstalled_postgres)
tests_postgres_test_calls_CFLAGS = $(AM_CFLAGS) $(LIBPQ_CFLAGS)
tests_postgres_test_backups_CFLAGS = $(AM_CFLAGS) $(LIBPQ_CFLAGS)
tests_postgres_test_faults_CFLAGS = $(AM_CFLAGS) $(LIBPQ_CFLAGS)
tests_postgres_test_conditions_CFLAGS = $(AM_CFLAGS) $(LIBPQ_CFLAGS)
tests_postgres_test_conditions_SOURCES = tests/registers/conditions.c tests/registers/bed.h tests/postgres/bed.c
tests_postgres_test_module_CFLAGS = $(AM_CFLAGS) $(LIBPQ_CFLAGS)
tests_postgres_test_mutexes_CFLAGS = $(AM_CFLAGS) $(LIBPQ_CFLAGS)
tests_postgres_test_mutexes_SOURCES = tests/registers/mutexes.c tests/registers/bed.h tests/postgres/bed.c
tests_postgres_test_testing_CFLAGS = $(AM_CFLAGS) $(LIBPQ_CFLAGS)
tests_postgres_test_tools_CFLAGS = $(AM_CFLAGS) $(LIBPQ_CFLAGS)
if HAVE_TLS
on_postgres_tests += tests/postgres/test_tls
tests_postgres_test_tls_CFLAGS = $(AM_CFLAGS) $(LIBPQ_CFLAGS)
tests_postgres_test_tls_SOURCES = tests/registers/tls.c tests/registers/bed.h tests/postgres/bed.c
tests_postgres_test_tls_LDADD = tests/lib/libtls.la $(LDADD) $(LIBSSL_LIBS)
endif
endif

# the driver of registers on Redis
redis_registers_tests = \
    tests/registers/test_redis \
    tests/registers/test_redis_calls \
    tests/registers/test_redis_groups \
    tests/registers/test_redis_store \
    $(redis_suite_tests)
tests_registers_test_redis_calls_SOURCES = tests/registers/test_redis_calls.c tests/registers/memory_redis.c
tests_registers_test_redis_store_SOURCES = tests/registers/test_store.c tests/registers/memory_redis.c
redis_suite_tests = tests/registers/test_redis_suite $(redis_group_suite_tests)
redis_group_suite_tests = \
    tests/registers/test_redis_cluster \
    tests/registers/test_redis_sentinel
if HAVE_TLS
redis_suite_tests += tests/registers/test_redis_tls
tests_registers_test_redis_tls_LDADD = tests/lib/libtls.la $(LDADD) $(LIBSSL_LIBS)
endif
$(redis_registers_tests): private LDADD = tests/registers/libprocess.la tests/registers/libredisbed.la tests/registers/libdriver.la tests/registers/libasker.la libdmutex/libredis-registers.la libdmutex/libregisters.la $(test_libs) $(up_to_api)
$(redis_registers_tests): tests/registers/libprocess.la tests/registers/libredisbed.la tests/registers/libdriver.la tests/registers/libasker.la libdmutex/libredis-registers.la $(up_to_api)

# the driver of ZooKeeper, on a server of its own
zookeeper_tests = \
    tests/registers/test_zookeeper \
    tests/registers/test_zookeeper_suite
$(zookeeper_tests): private LDADD = tests/registers/libzkserver.la tests/registers/libdriver.la tests/registers/libasker.la libdmutex/libzookeeper.la libdmutex/libregisters.la $(test_libs) $(up_to_api)
$(zookeeper_tests): tests/registers/libzkserver.la tests/registers/libdriver.la tests/registers/libasker.la libdmutex/libzookeeper.la $(up_to_api)
check_LTLIBRARIES += tests/registers/libzkserver.la
tests_registers_libzkserver_la_SOURCES = \
    tests/registers/zkserver.c \
    tests/registers/zkserver.h \
    libdmutex/base/bytes.c \
    libdmutex/stores/zookeeper/jute.c

# the whole library, and the tools, on ZooKeeper
on_zookeeper_tests = \
    tests/zookeeper/test_conditions \
    tests/zookeeper/test_mutexes \
    tests/zookeeper/test_tools
$(on_zookeeper_tests): private LDADD = tests/tools/libtool.la tests/registers/libzkserver.la $(test_libs) libdmutex/libdmutex.la
$(on_zookeeper_tests): tests/tools/libtool.la tests/registers/libzkserver.la libdmutex/libdmutex.la tools/dmutex$(EXEEXT)
tests_zookeeper_test_conditions_SOURCES = tests/registers/conditions.c tests/registers/bed.h tests/zookeeper/bed.c
tests_zookeeper_test_mutexes_SOURCES = tests/registers/mutexes.c tests/registers/bed.h tests/zookeeper/bed.c
if HAVE_TLS
on_zookeeper_tests += tests/zookeeper/test_tls
tests_zookeeper_test_tls_SOURCES = tests/registers/tls.c tests/registers/bed.h tests/zookeeper/bed.c
tests_zookeeper_test_tls_LDADD = tests/lib/libtls.la $(LDADD) $(LIBSSL_LIBS)
endif

# the driver of etcd, on a server of its own
etcd_tests = \
    tests/registers/test_etcd \
    tests/registers/test_etcd_suite
$(etcd_tests): private LDADD = tests/registers/libetcdserver.la tests/registers/libdriver.la tests/registers/libasker.la libdmutex/libetcd.la libdmutex/libregisters.la $(test_libs) $(up_to_api)
$(etcd_tests): tests/registers/libetcdserver.la tests/registers/libdriver.la tests/registers/libasker.la libdmutex/libetcd.la $(up_to_api)
check_LTLIBRARIES += tests/registers/libetcdserver.la
tests_registers_libetcdserver_la_SOURCES = \
    tests/registers/etcdserver.c \
    tests/registers/etcdserver.h \
    libdmutex/base/bytes.c \
    libdmutex/stores/etcd/json.c

# the whole library, and the tools, on etcd
on_etcd_tests = \
    tests/etcd/test_conditions \
    tests/etcd/test_mutexes \
    tests/etcd/test_tools
$(on_etcd_tests): private LDADD = tests/tools/libtool.la tests/registers/libetcdserver.la $(test_libs) libdmutex/libdmutex.la
$(on_etcd_tests): tests/tools/libtool.la tests/registers/libetcdserver.la libdmutex/libdmutex.la tools/dmutex$(EXEEXT)
tests_etcd_test_conditions_SOURCES = tests/registers/conditions.c tests/registers/bed.h tests/etcd/bed.c
tests_etcd_test_mutexes_SOURCES = tests/registers/mutexes.c tests/registers/bed.h tests/etcd/bed.c
if HAVE_TLS
on_etcd_tests += tests/etcd/test_tls
tests_etcd_test_tls_SOURCES = tests/registers/tls.c tests/registers/bed.h tests/etcd/bed.c
tests_etcd_test_tls_LDADD = tests/lib/libtls.la $(LDADD) $(LIBSSL_LIBS)
endif

# not in TESTS, but `make check-stores`
store_tests = $(postgres_tests) $(on_postgres_tests) $(etcd_tests) $(on_etcd_tests) $(zookeeper_tests) $(on_zookeeper_tests) $(memcached_tests) $(on_memcached_tests) $(mariadb_tests) $(on_mariadb_tests)

# the driver of memcached, on a server of its own
memcached_tests = \
    tests/registers/test_memcached \
    tests/registers/test_memcached_suite
$(memcached_tests): private LDADD = tests/registers/libmcserver.la tests/registers/libdriver.la tests/registers/libasker.la libdmutex/libmemcached.la libdmutex/libregisters.la $(test_libs) $(up_to_api)
$(memcached_tests): tests/registers/libmcserver.la tests/registers/libdriver.la tests/registers/libasker.la libdmutex/libmemcached.la $(up_to_api)
check_LTLIBRARIES += tests/registers/libmcserver.la
tests_registers_libmcserver_la_SOURCES = tests/registers/mcserver.c tests/registers/mcserver.h

# the whole library, and the tools, on memcached
on_memcached_tests = \
    tests/memcached/test_conditions \
    tests/memcached/test_losses \
    tests/memcached/test_mutexes \
    tests/memcached/test_tools
$(on_memcached_tests): private LDADD = tests/tools/libtool.la tests/registers/libmcserver.la $(test_libs) libdmutex/libdmutex.la
$(on_memcached_tests): tests/tools/libtool.la tests/registers/libmcserver.la libdmutex/libdmutex.la tools/dmutex$(EXEEXT)
tests_memcached_test_conditions_SOURCES = tests/registers/conditions.c tests/registers/bed.h tests/memcached/bed.c
tests_memcached_test_mutexes_SOURCES = tests/registers/mutexes.c tests/registers/bed.h tests/memcached/bed.c

# the driver of MariaDB, on a server of its own; and the whole library, and the tools, on it
if HAVE_MARIADB
mariadb_tests = \
    tests/registers/test_mariadb \
    tests/registers/test_mariadb_peers \
    tests/registers/test_mariadb_suite \
    $(mariadb_tls_tests)
if HAVE_TLS
mariadb_tls_tests = tests/registers/test_mariadb_pipe
tests_registers_test_mariadb_pipe_CFLAGS = $(AM_CFLAGS) $(LIBMARIADB_CFLAGS)
tests_registers_test_mariadb_pipe_LDADD = tests/lib/libtls.la $(LDADD) $(LIBSSL_LIBS)
endif
$(mariadb_tests): private LDADD = tests/registers/libmariaserver.la tests/registers/libdriver.la tests/registers/libasker.la libdmutex/libmaria-driver.la libdmutex/libregisters.la $(test_libs) $(up_to_api)
$(mariadb_tests): tests/registers/libmariaserver.la tests/registers/libdriver.la tests/registers/libasker.la libdmutex/libmaria-driver.la $(up_to_api)
check_LTLIBRARIES += tests/registers/libmariaserver.la
tests_registers_libmariaserver_la_CFLAGS = $(AM_CFLAGS) $(LIBMARIADB_CFLAGS)
tests_registers_libmariaserver_la_SOURCES = \
    tests/registers/mariaserver.c \
    tests/registers/mariaserver.h
tests_registers_test_mariadb_CFLAGS = $(AM_CFLAGS) $(LIBMARIADB_CFLAGS)
tests_registers_test_mariadb_peers_CFLAGS = $(AM_CFLAGS) $(LIBMARIADB_CFLAGS)
tests_registers_test_mariadb_suite_CFLAGS = $(AM_CFLAGS) $(LIBMARIADB_CFLAGS)

on_mariadb_tests = \
    tests/mariadb/test_conditions \
    tests/mariadb/test_mutexes \
    tests/mariadb/test_tools
$(on_mariadb_tests): private LDADD = tests/tools/libtool.la tests/registers/libmariaserver.la $(LIBMARIADB_LIBS) $(test_libs) libdmutex/libdmutex.la
$(on_mariadb_tests): tests/tools/libtool.la tests/registers/libmariaserver.la libdmutex/libdmutex.la tools/dmutex$(EXEEXT) $(uninstalled_mariadb)
tests_mariadb_test_conditions_CFLAGS = $(AM_CFLAGS) $(LIBMARIADB_CFLAGS)
tests_mariadb_test_conditions_SOURCES = tests/registers/conditions.c tests/registers/bed.h tests/mariadb/bed.c
tests_mariadb_test_mutexes_CFLAGS = $(AM_CFLAGS) $(LIBMARIADB_CFLAGS)
tests_mariadb_test_mutexes_SOURCES = tests/registers/mutexes.c tests/registers/bed.h tests/mariadb/bed.c
tests_mariadb_test_tools_CFLAGS = $(AM_CFLAGS) $(LIBMARIADB_CFLAGS)
if HAVE_TLS
on_mariadb_tests += tests/mariadb/test_tls
tests_mariadb_test_tls_CFLAGS = $(AM_CFLAGS) $(LIBMARIADB_CFLAGS)
tests_mariadb_test_tls_SOURCES = tests/registers/tls.c tests/registers/bed.h tests/mariadb/bed.c
tests_mariadb_test_tls_LDADD = tests/lib/libtls.la $(LDADD) $(LIBSSL_LIBS)
endif
endif

# parts and the whole on a server of their own
# parts, and the whole library, on a private server
server_tests = \
    tests/server/test_sentinel \
    tests/server/test_cluster_faults \
    $(server_inner_tests) \
    tests/server/test_addresses \
    tests/server/test_cluster \
    tests/server/test_cluster_moves \
    tests/server/test_cluster_vouchers \
    tests/server/test_cond_cancel \
    tests/server/test_cond_crowd \
    tests/server/test_cond_ends \
    tests/server/test_cond_forks \
    tests/server/test_cond_network \
    tests/server/test_cond_refused \
    tests/server/test_cond_server \
    tests/server/test_cond_storm \
    tests/server/test_conditions \
    tests/server/test_costs \
    tests/server/test_dead_waiters \
    tests/server/test_deaths \
    tests/server/test_allocations \
    tests/server/test_descriptors \
    tests/server/test_ends \
    tests/server/test_exit \
    tests/server/test_explain \
    tests/server/test_failover \
    tests/server/test_floods \
    tests/server/test_forces \
    tests/server/test_forgeries \
    tests/server/test_fork_handler \
    tests/server/test_forks \
    tests/server/test_grace \
    tests/server/test_impostors \
    tests/server/test_inboxes \
    tests/server/test_kept \
    tests/server/test_kept_cond \
    tests/server/test_kept_faults \
    tests/server/test_late \
    tests/server/test_lines \
    tests/server/test_limits \
    tests/server/test_local \
    tests/server/test_loop_thread \
    tests/server/test_logs \
    tests/server/test_loss \
    tests/server/test_many_holds \
    tests/server/test_metrics \
    tests/server/test_mixed_holds \
    tests/server/test_network \
    tests/server/test_orphans \
    tests/server/test_outsiders \
    tests/server/test_quorum \
    tests/server/test_quorum_losses \
    tests/server/test_quorum_member \
    tests/server/test_remains \
    tests/server/test_replicas \
    tests/server/test_rests \
    tests/server/test_sentinel_faults \
    tests/server/test_sentinel_holds \
    tests/server/test_sentinel_partitions \
    tests/server/test_server_faults \
    tests/server/test_server_refusals \
    tests/server/test_server_states \
    tests/server/test_shared_place \
    tests/server/test_stats \
    tests/server/test_switch \
    tests/server/test_testing \
    tests/server/test_testing_abandon \
    tests/server/test_system_calls \
    tests/server/test_turns
# the scripts and the node, without the shared library; and a test with copies that run where the shared library
# cannot be reached
server_inner_tests = \
    tests/server/test_kept_ends \
    tests/server/test_lines_bound \
    tests/server/test_lines_ends \
    tests/server/test_lines_seats \
    tests/server/test_local_strangers \
    tests/server/test_moments \
    tests/server/test_news_first \
    tests/server/test_node \
    tests/server/test_scripts_calls \
    tests/server/test_scripts_cluster \
    tests/server/test_scripts_cond \
    tests/server/test_scripts_cond_broadcast \
    tests/server/test_scripts_cond_death \
    tests/server/test_scripts_cond_end \
    tests/server/test_scripts_cond_faults \
    tests/server/test_scripts_cond_retry \
    tests/server/test_scripts_cond_signal \
    tests/server/test_scripts_dead \
    tests/server/test_scripts_death \
    tests/server/test_scripts_faults \
    tests/server/test_scripts_grace \
    tests/server/test_scripts_last \
    tests/server/test_scripts_lone \
    tests/server/test_scripts_numbers \
    tests/server/test_scripts_own \
    tests/server/test_scripts_queue \
    tests/server/test_scripts_retry \
    tests/server/test_scripts_tokens \
    tests/server/test_scripts_wanted
# with TLS, if the library has TLS
tls_tests =
tls_inner_tests =
if HAVE_TLS
tls_tests += \
    tests/server/test_cluster_tls \
    tests/server/test_sentinel_tls \
    tests/server/test_talkers \
    tests/server/test_tls \
    tests/server/test_tls_module \
    tests/server/test_tls_network
tls_inner_tests += tests/server/test_sentinel_moves tests/server/test_tls_stream
endif
server_tests += $(tls_tests) $(tls_inner_tests)
tests_lib_libtls_la_CFLAGS = $(AM_CFLAGS) $(LIBSSL_CFLAGS)
tests_lib_libtls_la_LIBADD = $(LIBSSL_LIBS)
tests_lib_libtls_la_SOURCES = tests/lib/tls.c tests/lib/tls.h
tests_server_libhelp_la_SOURCES = \
    tests/server/kept.c \
    tests/server/kept.h \
    tests/server/line_state.c \
    tests/server/line_state.h \
    tests/server/pair.c \
    tests/server/pair.h \
    tests/server/scripts.c \
    tests/server/scripts.h \
    tests/server/scripts_inbox.c \
    tests/server/scripts_look.c \
    tests/server/shards.c \
    tests/server/shards.h \
    tests/server/stops.c \
    tests/server/stops.h \
    tests/server/trio.c \
    tests/server/trio.h \
    tests/server/warm.c \
    tests/server/warm.h
$(server_tests): private LDADD = tests/server/libhelp.la $(test_libs) libdmutex/libdmutex.la
$(tls_tests) $(tls_inner_tests): private AM_CFLAGS += $(LIBSSL_CFLAGS)
$(tls_tests): private LDADD = tests/lib/libtls.la tests/server/libhelp.la $(test_libs) libdmutex/libdmutex.la
$(tls_inner_tests): private LDADD = tests/lib/libtls.la $(test_libs) $(up_to_api)
$(tls_tests) $(tls_inner_tests): tests/lib/libtls.la
$(server_inner_tests): private LDADD = tests/server/libhelp.la $(test_libs) $(up_to_api)
$(server_tests): tests/server/libhelp.la $(up_to_api)
# functions of the library that the test replaces; the handlers of fork() are not in the parts
tests_server_test_moments_SOURCES = tests/server/test_moments.c libdmutex/process/life/lifetime.c
tests_server_test_moments_LDFLAGS = $(AM_LDFLAGS) \
    -Wl,--wrap=free \
    -Wl,--wrap=dm_link_listen \
    -Wl,--wrap=dm_node_end \
    -Wl,--wrap=dm_redis_ask
# tests/server/stops.c
stop_wraps = \
    -Wl,--wrap=dm_clock_boot_ns \
    -Wl,--wrap=dm_inbox_take \
    -Wl,--wrap=dm_line_sit_down \
    -Wl,--wrap=dm_redis_ask \
    -Wl,--wrap=dm_returns_await \
    -Wl,--wrap=dm_self_sleep \
    -Wl,--wrap=dm_visit_begin
# programs that export functions of our dependencies: of hiredis; one that our module calls, and one that libssl calls
outsiders = tests/server/outsider tests/server/outsider_hiredis tests/server/outsider_module tests/server/outsider_libssl
$(outsiders): private LDADD = libdmutex/libdmutex.la
tests_server_outsider_SOURCES = tests/server/outsider.c
tests_server_outsider_hiredis_CPPFLAGS = $(AM_CPPFLAGS) -DEXPORTS_HIREDIS
tests_server_outsider_hiredis_LDFLAGS = $(AM_LDFLAGS) -Wl,--export-dynamic
tests_server_outsider_hiredis_SOURCES = tests/server/outsider.c
tests_server_outsider_module_CPPFLAGS = $(AM_CPPFLAGS) -DEXPORTED=SSL_CTX_new_ex
tests_server_outsider_module_LDFLAGS = $(AM_LDFLAGS) -Wl,--export-dynamic
tests_server_outsider_module_SOURCES = tests/server/outsider.c
tests_server_outsider_libssl_CPPFLAGS = $(AM_CPPFLAGS) -DEXPORTED=EVP_CIPHER_CTX_new
tests_server_outsider_libssl_LDFLAGS = $(AM_LDFLAGS) -Wl,--export-dynamic
tests_server_outsider_libssl_SOURCES = tests/server/outsider.c
# a program that locks in the constructor of a library that it loads
tests_server_in_constructor_LDADD = libdmutex/libdmutex.la -ldl
tests_server_in_constructor_LDFLAGS = $(AM_LDFLAGS) -Wl,--export-dynamic
# a program that loads the library itself
tests_server_loads_late_LDADD = -ldl
tests_server_test_kept_ends_SOURCES = tests/server/test_kept_ends.c libdmutex/process/life/lifetime.c
tests_server_test_kept_ends_LDFLAGS = $(AM_LDFLAGS) $(stop_wraps)
tests_server_test_lines_bound_SOURCES = tests/server/test_lines_bound.c libdmutex/process/life/lifetime.c
tests_server_test_lines_bound_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=dm_tenure_bound
tests_server_test_lines_ends_SOURCES = tests/server/test_lines_ends.c libdmutex/process/life/lifetime.c
tests_server_test_lines_ends_LDFLAGS = $(AM_LDFLAGS) $(stop_wraps)
tests_server_test_lines_seats_SOURCES = tests/server/test_lines_seats.c libdmutex/process/life/lifetime.c
tests_server_test_lines_seats_LDFLAGS = $(AM_LDFLAGS) $(stop_wraps)
tests_server_test_node_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=dm_greeting_identify

# what POSIX says about each function
conformance_tests = \
    tests/conformance/test_attributes \
    tests/conformance/test_config_file \
    tests/conformance/test_configure \
    tests/conformance/test_destroy \
    tests/conformance/test_errors \
    tests/conformance/test_exclusion \
    tests/conformance/test_fork \
    tests/conformance/test_interrupts \
    tests/conformance/test_leftovers \
    tests/conformance/test_names \
    tests/conformance/test_objects \
    tests/conformance/test_ownership \
    tests/conformance/test_private \
    tests/conformance/test_stacks \
    tests/conformance/test_time \
    tests/conformance/test_torn \
    tests/conformance/test_unclear \
    tests/conformance/dropin/test_dropin \
    tests/conformance/shalls/test_shalls \
    tests/conformance/test_wallclock

# those that use private mutexes without a name, once more: with libc's own, as programs have them.  The runs above
# have DMUTEX_PRIVATE=server (tests/lib/testlib.c).
libc_tests = \
    tests/libc/conformance/test_destroy.sh \
    tests/libc/conformance/test_errors.sh \
    tests/libc/conformance/test_fork.sh \
    tests/libc/conformance/test_objects.sh \
    tests/libc/conformance/dropin/test_dropin.sh \
    tests/libc/conformance/shalls/test_shalls.sh
tests/libc/%.sh:
	$(AM_V_GEN)$(MKDIR_P) $(@D) && echo 'DMUTEX_PRIVATE=libc exec tests/$*' >$@
CLEANFILES += $(libc_tests)

# Scenarios once more, with kept leases and with mutexes that threads hand on (tests/lib/mutexes.h): some in each run,
# all in long runs.  Left out, besides the tests of scripts and parts:
#
#     server/test_costs           counts the requests of fair mutexes
#     server/test_exit            awaits its threads in the server's queue, and they sit in a line
#     server/test_testing_abandon likewise
#     conformance/test_stacks     likewise
#     conformance/test_ownership counts commands, and a lease kept from another test is released meanwhile
#     server/test_cond_cancel     awaits the end of each hold at the server, hundreds of times a linger time
#     server/test_fork_handler    its child ends by _exit(), which leaves a kept lease to the lease's end
#     server/test_cond_forks      likewise
#     conformance/shalls          likewise
#     server/test_limits          a kept lease needs neither descriptors nor a server
#     server/test_testing         likewise
#     server/test_turns           a trylock of another process finds a kept mutex busy, as the manual says
#     conformance/test_objects    so does a destroy
#     conformance/test_unclear    loses the answers to locks and unlocks, and a kept mutex asks nothing
linger_tests = \
    tests/linger/conformance/test_interrupts.sh \
    tests/linger/server/test_cond_crowd.sh \
    tests/linger/server/test_conditions.sh \
    tests/linger/server/test_dead_waiters.sh \
    tests/linger/server/test_deaths.sh \
    tests/linger/server/test_ends.sh \
    tests/linger/server/test_forces.sh \
    tests/linger/server/test_forks.sh
long_linger_tests = \
    tests/linger/conformance/test_destroy.sh \
    tests/linger/conformance/test_errors.sh \
    tests/linger/conformance/test_exclusion.sh \
    tests/linger/conformance/test_fork.sh \
    tests/linger/conformance/test_leftovers.sh \
    tests/linger/conformance/test_time.sh \
    tests/linger/conformance/test_wallclock.sh \
    tests/linger/faults/test_faults.sh \
    tests/linger/server/test_cond_ends.sh \
    tests/linger/server/test_cond_network.sh \
    tests/linger/server/test_cond_refused.sh \
    tests/linger/server/test_cond_server.sh \
    tests/linger/server/test_cond_storm.sh \
    tests/linger/server/test_explain.sh \
    tests/linger/server/test_failover.sh \
    tests/linger/server/test_floods.sh \
    tests/linger/server/test_grace.sh \
    tests/linger/server/test_impostors.sh \
    tests/linger/server/test_inboxes.sh \
    tests/linger/server/test_late.sh \
    tests/linger/server/test_loss.sh \
    tests/linger/server/test_many_holds.sh \
    tests/linger/server/test_network.sh \
    tests/linger/server/test_orphans.sh \
    tests/linger/server/test_remains.sh \
    tests/linger/server/test_server_faults.sh \
    tests/linger/server/test_server_refusals.sh \
    tests/linger/server/test_server_states.sh \
    tests/linger/server/test_switch.sh
tests/linger/%.sh:
	$(AM_V_GEN)$(MKDIR_P) $(@D) && echo 'DMUTEX_LINGER=1000 DMUTEX_TEST_HANDED=1 exec tests/$*' >$@
CLEANFILES += $(linger_tests) $(long_linger_tests)

# one plain pthread program, built with the drop-in header in several ways
dropin_programs = \
    tests/conformance/dropin/visits_anonymous \
    tests/conformance/dropin/visits_group \
    tests/conformance/dropin/visits_longest \
    tests/conformance/dropin/visits_named \
    tests/conformance/dropin/visits_unit
dropin_cppflags = -I$(top_srcdir)/include -include dmutex/pthread.h -fmacro-prefix-map=$(top_srcdir)/=
dropin_long_cppflags = \
    $(dropin_cppflags) -include $(top_srcdir)/tests/conformance/dropin/long.h -DDMUTEX_GROUP='"long"'
visits_sources = tests/conformance/dropin/visits.c tests/conformance/dropin/visits.h
tests_conformance_dropin_visits_anonymous_SOURCES = $(visits_sources)
tests_conformance_dropin_visits_anonymous_CPPFLAGS = $(dropin_cppflags)
tests_conformance_dropin_visits_group_SOURCES = $(visits_sources)
tests_conformance_dropin_visits_group_CPPFLAGS = $(dropin_cppflags) -DDMUTEX_GROUP='"dropin"'
tests_conformance_dropin_visits_longest_SOURCES = $(visits_sources)
tests_conformance_dropin_visits_longest_CPPFLAGS = $(dropin_long_cppflags) -DDMUTEX_UNIT=LONGEST
tests_conformance_dropin_visits_named_SOURCES = $(visits_sources)
tests_conformance_dropin_visits_named_CPPFLAGS = $(dropin_cppflags) -DNAME='"dropin/set"'
tests_conformance_dropin_visits_unit_SOURCES = $(visits_sources)
tests_conformance_dropin_visits_unit_CPPFLAGS = \
    $(dropin_cppflags) -DDMUTEX_GROUP='"dropin"' -DDMUTEX_UNIT='"ledger"'
$(dropin_programs): private LDADD = libdmutex/libdmutex.la
EXTRA_DIST += tests/conformance/dropin/long.h

# one source of plain pthread calls, compiled twice
shalls_sources = \
    tests/conformance/shalls/cancel.c \
    tests/conformance/shalls/cond_cancel.c \
    tests/conformance/shalls/cond_robust.c \
    tests/conformance/shalls/cond_shared.c \
    tests/conformance/shalls/cond_signal.c \
    tests/conformance/shalls/cond_time.c \
    tests/conformance/shalls/cond_wait.c \
    tests/conformance/shalls/condattr.c \
    tests/conformance/shalls/helpers.c \
    tests/conformance/shalls/main.c \
    tests/conformance/shalls/mutex.c \
    tests/conformance/shalls/mutex_init.c \
    tests/conformance/shalls/mutex_time.c \
    tests/conformance/shalls/mutexattr.c \
    tests/conformance/shalls/objects.c \
    tests/conformance/shalls/robust.c \
    tests/conformance/shalls/shalls.h \
    tests/conformance/shalls/shared.c
# cancellation unwinds: -fexceptions; the first one tests libc, and what it does wrong on purpose a
# sanitizer would complain about
tests_conformance_shalls_shalls_pthread_SOURCES = $(shalls_sources)
tests_conformance_shalls_shalls_pthread_CPPFLAGS = -D_GNU_SOURCE
tests_conformance_shalls_shalls_pthread_CFLAGS = \
    -std=gnu11 -pthread -fexceptions $(WARNING_CFLAGS)
tests_conformance_shalls_shalls_pthread_LDADD =
tests_conformance_shalls_shalls_dmutex_SOURCES = $(shalls_sources)
tests_conformance_shalls_shalls_dmutex_CPPFLAGS = \
    -I$(top_srcdir)/include -D_GNU_SOURCE -include dmutex/pthread.h
tests_conformance_shalls_shalls_dmutex_CFLAGS = $(common_cflags) -fexceptions
tests_conformance_shalls_shalls_dmutex_LDADD = libdmutex/libdmutex.la
tests_conformance_shalls_test_shalls_CPPFLAGS = $(AM_CPPFLAGS) \
    -DDIFFERENCES='"$(abs_top_srcdir)/tests/conformance/shalls/differences"'
EXTRA_DIST += tests/conformance/shalls/differences

# the preload layer: unmodified programs under dmutex-run, and under the module
preload_tests = \
    tests/preload/test_keeper_hold \
    tests/preload/test_kernel_lock \
    tests/preload/test_lockfile_crowd \
    tests/preload/test_lockfile_doubt \
    tests/preload/test_lockfile_fcntl \
    tests/preload/test_lockfile_flock \
    tests/preload/test_lockfile_keeper \
    tests/preload/test_lockfile_loss \
    tests/preload/test_lockfile_next \
    tests/preload/test_lockfile_strangers \
    tests/preload/test_run \
    tests/preload/test_run_cluster \
    tests/preload/test_run_config \
    tests/preload/test_run_list \
    tests/preload/test_run_loaded \
    tests/preload/test_run_program \
    tests/preload/test_run_rules \
    tests/preload/test_run_secret \
    tests/preload/test_run_strangers \
    tests/preload/test_run_unused
# a part of the keeper, without the library
tests_preload_test_keeper_hold_SOURCES = \
    tests/preload/test_keeper_hold.c \
    preload/keeper/hold.c \
    preload/keeper/voice.c \
    preload/keeper/witness.c
tests_preload_test_keeper_hold_LDADD = $(GLIB_LIBS) $(CMOCKA_LIBS)
# a program to be run under the module: without a sanitizer, which would have to come first
tests_preload_locker_CFLAGS = -std=gnu11 -pthread $(WARNING_CFLAGS)
tests_preload_locker_LDADD =
tests_preload_locker_SOURCES = tests/preload/locker.c tests/lib/filter.c tests/lib/filter.h

# the module of the preload layer, and plain pthread programs under it
module_tests = \
    tests/preload/test_calls \
    tests/preload/test_conds \
    tests/preload/test_elffile \
    tests/preload/test_harmless \
    tests/preload/test_mappings \
    tests/preload/test_maps \
    tests/preload/test_names \
    tests/preload/test_places \
    tests/preload/test_reports \
    tests/preload/test_rules \
    tests/preload/test_small \
    tests/preload/test_text
# parts of the module, only for their own tests
tests_preload_libparts_la_CFLAGS = $(common_cflags)
tests_preload_libparts_la_SOURCES = \
    preload/module/base/memory.c \
    preload/module/base/real.c \
    preload/module/base/scratch.c \
    preload/module/base/settings.c \
    preload/module/names/maps.c \
    preload/shared/kernel_lock.c \
    $(preload_common)
# dmutex-run; two hosts, with lock files; programs that the tests compile
tests_preload_libhelp_la_CPPFLAGS = $(AM_CPPFLAGS) \
    -DPROGRAMS='"$(abs_top_srcdir)/tests/preload/programs"'
tests_preload_libhelp_la_SOURCES = \
    tests/preload/host.c \
    tests/preload/host.h \
    tests/preload/naming.c \
    tests/preload/naming.h \
    tests/preload/programs.c \
    tests/preload/programs.h \
    tests/preload/run.c \
    tests/preload/run.h
preload_test_libs = tests/preload/libhelp.la tests/preload/libparts.la preload/librun.la
$(preload_tests) $(module_tests): private LDADD = $(preload_test_libs) $(test_libs) libdmutex/libdmutex.la
$(preload_tests) $(module_tests): $(preload_test_libs)
EXTRA_DIST += \
    tests/preload/programs/beside.c \
    tests/preload/programs/forker.c \
    tests/preload/programs/guard.cc \
    tests/preload/programs/legacy.c \
    tests/preload/programs/legacy.h \
    tests/preload/programs/legacy_around.c \
    tests/preload/programs/legacy_calls.c \
    tests/preload/programs/other_thread.c \
    tests/preload/programs/places.c \
    tests/preload/programs/places.h \
    tests/preload/programs/places_library.c \
    tests/preload/programs/shelf.c \
    tests/preload/programs/small.c \
    tests/preload/programs/spawning_malloc.c \
    tests/preload/programs/symbols.c \
    tests/preload/programs/symbols_again.c

# everything that can fail fails once; with libc's functions once more in the program
fault_tests = tests/faults/test_faults
tests_faults_test_faults_LDFLAGS = $(AM_LDFLAGS) -Wl,--export-dynamic
tests_faults_test_faults_LDADD = tests/faults/libfail.la $(LDADD)
if HAVE_TLS
tests_faults_test_faults_LDADD += tests/lib/libtls.la $(LIBSSL_LIBS)
endif
tests_faults_test_faults_SOURCES = \
    tests/faults/paths.c \
    tests/faults/paths.h \
    tests/faults/run.c \
    tests/faults/run.h \
    tests/faults/test_faults.c
# not sanitized, for malloc() is called before a sanitizer is ready; and it jumps to the real one, so that a
# sanitizer sees who called
tests_faults_libfail_la_CFLAGS = -std=gnu11 -pthread $(WARNING_CFLAGS) -foptimize-sibling-calls
tests_faults_libfail_la_SOURCES = tests/faults/fail.c tests/faults/fail.h

# drivers of register stores
registers_tests = \
    tests/registers/test_sweeps \
    tests/registers/test_conditions \
    tests/registers/test_driver_controls \
    tests/registers/test_forks \
    tests/registers/test_memory \
    tests/registers/test_rests \
    tests/registers/test_rules \
    tests/registers/test_store \
    tests/registers/test_view
tests_registers_libasker_la_SOURCES = tests/registers/asker.c tests/registers/asker.h
tests_registers_libredisbed_la_SOURCES = tests/registers/redisbed.c tests/registers/redisbed.h
tests_registers_libdriver_la_SOURCES = tests/registers/driver.c tests/registers/driver.h
tests_registers_libmemory_la_SOURCES = tests/registers/memory.c tests/registers/memory.h
tests_registers_test_driver_controls_SOURCES = tests/registers/test_driver_controls.c tests/registers/memory_bed.h
tests_registers_test_memory_SOURCES = tests/registers/test_memory.c tests/registers/memory_bed.h
tests_registers_test_forks_SOURCES = tests/registers/test_forks.c tests/registers/forks.c tests/registers/forks.h
tests_registers_libprocess_la_SOURCES = tests/registers/process.c tests/registers/process.h
$(registers_tests): private LDADD = tests/registers/libdriver.la tests/registers/libprocess.la tests/registers/libmemory.la $(test_libs) $(up_to_registers)
$(registers_tests): tests/registers/libdriver.la tests/registers/libprocess.la tests/registers/libmemory.la $(up_to_registers)

# the simulator, and what it believes of servers
sim_tests = \
    tests/sim/test_sim \
    tests/sim/test_sim_controls \
    $(sim_store_tests)
sim_store_tests = tests/sim/test_same_answers tests/sim/test_short_ways tests/sim/test_store
tests_sim_libsim_la_CPPFLAGS = $(AM_CPPFLAGS) $(LIBLUA_CFLAGS)
tests_sim_libsim_la_LIBADD = $(LIBLUA_LIBS)
tests_sim_libsim_la_SOURCES = \
    tests/sim/clock.c \
    tests/sim/commands.c \
    tests/sim/commands.h \
    tests/sim/random_calls.c \
    tests/sim/random_calls.h \
    tests/sim/registers.c \
    tests/sim/registers.h \
    tests/sim/replicas.c \
    tests/sim/scripting.c \
    tests/sim/scripting.h \
    tests/sim/store.c \
    tests/sim/store.h
# the library's own parts but for clocks, threads, connection and loop; what calls the core and the
# state lock comes by the simulator
sim_sources = \
    libdmutex/process/life/lifetime.c \
    tests/sim/check.c \
    tests/sim/check.h \
    tests/sim/check_parts.h \
    tests/sim/cluster.c \
    tests/sim/cluster.h \
    tests/sim/cluster_moves.c \
    tests/sim/cluster_parts.h \
    tests/sim/cluster_shards.c \
    tests/sim/faults.c \
    tests/sim/faults.h \
    tests/sim/fiber.c \
    tests/sim/fiber.h \
    tests/sim/hooks.c \
    tests/sim/hooks.h \
    tests/sim/judge.c \
    tests/sim/liar.c \
    tests/sim/liar.h \
    tests/sim/look.c \
    tests/sim/marks.c \
    tests/sim/marks.h \
    tests/sim/named.c \
    tests/sim/net.c \
    tests/sim/net.h \
    tests/sim/plain.c \
    tests/sim/plain.h \
    tests/sim/plain_judge.c \
    tests/sim/plain_locks.c \
    tests/sim/plain_parts.h \
    tests/sim/plain_way.c \
    tests/sim/plans.c \
    tests/sim/plans.h \
    tests/sim/process.c \
    tests/sim/process.h \
    tests/sim/run.c \
    tests/sim/run.h \
    tests/sim/runtime.c \
    tests/sim/sentinels.c \
    tests/sim/sentinels.h \
    tests/sim/server.c \
    tests/sim/server.h \
    tests/sim/server_parts.h \
    tests/sim/sockets.c \
    tests/sim/sockets.h \
    tests/sim/words.c \
    tests/sim/words.h \
    tests/sim/work.c \
    tests/sim/work.h \
    tests/sim/world.c \
    tests/sim/world.h
sim_wraps = \
    -Wl,--wrap=dm_bell_answer \
    -Wl,--wrap=dm_bell_close \
    -Wl,--wrap=dm_bell_open \
    -Wl,--wrap=dm_bell_ring \
    -Wl,--wrap=dm_ident_random \
    -Wl,--wrap=dm_identify_at_request \
    -Wl,--wrap=dm_link_close \
    -Wl,--wrap=dm_link_free_unused \
    -Wl,--wrap=dm_link_new \
    -Wl,--wrap=dm_mutex_lock \
    -Wl,--wrap=dm_session_give_kept \
    -Wl,--wrap=sched_yield \
    -Wl,--wrap=dm_hold_look_at \
    -Wl,--wrap=dm_claim_take_back \
    -Wl,--wrap=dm_hold_send \
    -Wl,--wrap=dm_hold_step \
    -Wl,--wrap=dm_master_watch_is_fresh \
    -Wl,--wrap=dm_redis_hear \
    -Wl,--wrap=dm_reg_apply \
    -Wl,--wrap=dm_state_lock \
    -Wl,--wrap=dm_state_unlock \
    -Wl,--wrap=dm_fast_hash \
    -Wl,--wrap=dm_fast_take \
    -Wl,--wrap=__pthread_register_cancel \
    -Wl,--wrap=__pthread_unregister_cancel \
    -Wl,--wrap=__pthread_unwind_next \
    -Wl,--wrap=pthread_setcancelstate
sim_programs = tests/sim/sim tests/sim/test_sim tests/sim/test_sim_controls tests/fuzz/test_sim
tests_sim_sim_SOURCES = tests/sim/sim.c $(sim_sources)
tests_sim_test_sim_SOURCES = tests/sim/test_sim.c $(sim_sources)
tests_sim_test_sim_controls_SOURCES = tests/sim/test_sim_controls.c $(sim_sources)
tests/sim/%.o: private AM_CFLAGS += -fexceptions
sim_libs = tests/sim/libsim.la tests/registers/libmemory.la libdmutex/libregisters.la
$(sim_store_tests): private LDADD = tests/sim/libsim.la $(test_libs) libdmutex/libregisters.la $(up_to_api)
$(sim_programs): private AM_LDFLAGS += $(sim_wraps)
$(sim_programs): private LDADD = $(sim_libs) $(up_to_process) $(CMOCKA_LIBS)
$(sim_programs) $(sim_store_tests): $(sim_libs) $(up_to_api)

EXTRA_DIST += tests/sim/README.md

# fuzzers, each with a driver of our own
fuzz_tests = \
    tests/fuzz/test_config \
    tests/fuzz/test_connection \
    tests/fuzz/test_messages \
    tests/fuzz/test_names \
    tests/fuzz/test_replies \
    tests/fuzz/test_rules \
    tests/fuzz/test_sentinel \
    tests/fuzz/test_settings \
    tests/fuzz/test_slots \
    tests/fuzz/test_url \
    tests/fuzz/test_values
fuzz_sim_tests = tests/fuzz/test_sim
tests_fuzz_libdriver_la_SOURCES = tests/fuzz/driver.c tests/fuzz/fuzz.h
tests_fuzz_libtext_la_SOURCES = tests/fuzz/far_end.c tests/fuzz/far_end.h tests/fuzz/text.c
fuzz_libs = tests/fuzz/libdriver.la tests/fuzz/libtext.la
tests_fuzz_test_sim_SOURCES = tests/fuzz/test_sim.c $(sim_sources)
$(fuzz_tests): private LDADD = $(fuzz_libs) preload/librun.la libdmutex/libregisters.la $(up_to_api)
$(fuzz_tests) $(fuzz_sim_tests): $(fuzz_libs) preload/librun.la libdmutex/libregisters.la $(up_to_api)
$(fuzz_sim_tests): private LDADD = $(fuzz_libs) $(sim_libs) $(up_to_process)

# The same with libFuzzer and clang, in its own folder: `make fuzz`.  Everything that they test is in one
# archive, from which each takes what it does not replace.
fuzz: tests/fuzz/clang/parts.a tests/fuzz/clang/libsim.a
	$(AM_V_at)for test in $(fuzz_tests) $(fuzz_sim_tests); do \
	    name=$${test##*/test_}; wraps=; sim=; \
	    test $$name != sim || { wraps='$(sim_wraps)'; sim='$(clang_sim)'; }; \
	    echo "  CCLD     tests/fuzz/clang/$$name"; \
	    $(clang_compile) -fsanitize=fuzzer $$wraps -o tests/fuzz/clang/$$name $(srcdir)/tests/fuzz/test_$$name.c \
	        $(srcdir)/tests/fuzz/text.c $$sim tests/fuzz/clang/parts.a \
	        $(LIBLUA_LIBS) $(HIREDIS_LIBS) $(LIBSSL_LIBS) $(GLIB_LIBS) -ldl || exit; \
	done
clang_sim = $(srcdir)/libdmutex/process/life/lifetime.c tests/fuzz/clang/libsim.a
# clang is told what gcc defines
clang_compile = $(CLANG) -fsanitize=address,undefined -D__SANITIZE_ADDRESS__ -fno-sanitize-recover=all -O1 -g \
    -std=gnu11 -pthread -fexceptions \
    $(DEFS) -I. $(AM_CPPFLAGS) -DBINDIR='"$(bindir)"' -DPKGLIBDIR='"$(pkglibdir)"' \
    $(LIBLUA_CFLAGS) $(HIREDIS_CFLAGS) $(LIBSSL_CFLAGS) $(GLIB_CFLAGS)
clang_archive = \
    test -n '$(CLANG)' || { echo 'clang was not found by configure'; exit 1; }; \
    $(MKDIR_P) $(@D); rm -f $@; \
    for source in $(filter %.c,$^); do \
	object=tests/fuzz/clang/`echo $${source\#\#*../} | tr / _`.o; \
	echo "  CC       $$object"; \
	$(clang_compile) -fsanitize=fuzzer-no-link -c -o $$object $$source && $(AR) cr $@ $$object || exit; \
    done
tests/fuzz/clang/parts.a: \
    $(libdmutex_libbase_la_SOURCES) $(libdmutex_libconfig_la_SOURCES) $(libdmutex_libcore_la_SOURCES) \
    $(libdmutex_libstore_la_SOURCES) $(libdmutex_libregisters_la_SOURCES) \
    $(libdmutex_liblink_la_SOURCES) $(libdmutex_libredis_la_SOURCES) \
    $(libdmutex_libquorum_la_SOURCES) libdmutex/stores/stores.c $(libdmutex_libtls_la_SOURCES) $(libdmutex_libopenssl_la_SOURCES) \
    $(libdmutex_libspawn_la_SOURCES) $(libdmutex_libprocess_la_SOURCES) $(libdmutex_libnames_la_SOURCES) \
    $(libdmutex_libapi_la_SOURCES) \
    libdmutex/stores/redis/wire/scripts.c tests/fuzz/far_end.c $(preload_librun_la_SOURCES)
	$(AM_V_at)$(clang_archive)
tests/fuzz/clang/libsim.a: $(tests_sim_libsim_la_SOURCES) $(tests_registers_libmemory_la_SOURCES) $(filter tests/%,$(sim_sources))
	$(AM_V_at)$(clang_archive)
.PHONY: fuzz

# many processes on a real server, and real faults
chaos_tests = \
    tests/chaos/test_chaos \
    tests/chaos/test_check \
    tests/chaos/test_check_deaths \
    tests/chaos/test_failovers \
    tests/chaos/test_promotions \
    tests/chaos/test_takeover
# with groups of servers, and for half a minute each: not in TESTS, but `make check-groups`
group_programs = \
    tests/chaos/test_quorum \
    tests/chaos/test_slots \
    tests/chaos/test_switches
# by scripts: for programs, automake has rules for those in TESTS only
if HAVE_CMOCKA
group_tests = \
    tests/groups/chaos/test_quorum.sh \
    tests/groups/chaos/test_slots.sh \
    tests/groups/chaos/test_switches.sh
if HAVE_POSTGRES
group_tests += tests/groups/chaos/test_databases.sh
endif
endif
tests/groups/%.sh:
	$(AM_V_GEN)$(MKDIR_P) $(@D) && echo 'exec tests/$*' >$@
CLEANFILES += $(group_tests)
tests_chaos_libchaos_la_SOURCES = \
    tests/chaos/check.c \
    tests/chaos/check.h \
    tests/chaos/clocks.h \
    tests/chaos/dice.h \
    tests/chaos/group.c \
    tests/chaos/group.h \
    tests/chaos/history.c \
    tests/chaos/history.h \
    tests/chaos/masters.c \
    tests/chaos/masters.h \
    tests/chaos/nemesis.c \
    tests/chaos/nemesis.h \
    tests/chaos/resource.c \
    tests/chaos/resource.h \
    tests/chaos/round.c \
    tests/chaos/round.h \
    tests/chaos/runs.h \
    tests/chaos/slots.c \
    tests/chaos/slots.h \
    tests/chaos/stage.c \
    tests/chaos/stage.h \
    tests/chaos/worker.c \
    tests/chaos/worker.h \
    tests/chaos/written.h
# a module for servers, without a sanitizer: their wall clocks
tests_chaos_skew_la_SOURCES = tests/chaos/skew.c
tests_chaos_skew_la_CFLAGS = -std=gnu11 $(WARNING_CFLAGS)
tests_chaos_skew_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
tests_chaos_skew_la_LIBADD =
# replaces libc's clocks in the programs whose workers move a clock
tests_chaos_libclocks_la_SOURCES = tests/chaos/clocks.c
chaos_libs = tests/chaos/libchaos.la tests/chaos/libclocks.la
$(chaos_tests) $(group_programs): private LDADD = $(chaos_libs) $(test_libs) libdmutex/libdmutex.la
$(chaos_tests) $(group_programs): $(chaos_libs)
# PostgreSQL in place of Redis
if HAVE_POSTGRES
postgres_group_programs = tests/chaos/test_databases
group_programs += $(postgres_group_programs)
tests_chaos_test_databases_SOURCES = tests/chaos/test_databases.c tests/chaos/databases.c tests/chaos/databases.h
tests_chaos_test_databases_CFLAGS = $(AM_CFLAGS) $(LIBPQ_CFLAGS)
tests_chaos_test_databases_LDADD = $(chaos_libs) tests/registers/libpg.la $(LIBPQ_LIBS) $(test_libs) libdmutex/libdmutex.la
$(postgres_group_programs): tests/registers/libpg.la tools/dmutex$(EXEEXT) $(uninstalled_postgres)
endif
# with a control that takes a part of the library away
tests_chaos_test_switches_SOURCES = tests/chaos/test_switches.c libdmutex/process/life/lifetime.c
tests_chaos_test_switches_LDADD = $(chaos_libs) $(test_libs) $(up_to_api)
tests_chaos_test_switches_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=dm_master_watch_is_fresh -Wl,--wrap=dm_link_close

# dmutex(1), by its output and exit status
tool_tests = \
    tests/tools/test_break \
    tests/tools/test_doctor \
    tests/tools/test_doctor_cluster \
    tests/tools/test_local_server \
    tests/tools/test_run_lock \
    tests/tools/test_run_loss \
    tests/tools/test_top \
    tests/tools/test_tree \
    tests/tools/test_views \
    tests/tools/test_subcommands_cluster \
    tests/tools/test_subcommands_quorum \
    tests/tools/test_subcommands_sentinel
tool_tls_tests =
if HAVE_TLS
tool_tls_tests += tests/tools/test_subcommands_tls
endif
tests_tools_test_tree_SOURCES = tests/tools/test_tree.c tools/servant.c tools/tree.c
tests_tools_libtool_la_SOURCES = tests/tools/tool.c tests/tools/tool.h
# with hosts that have keepers of lock files
tool_host_tests = tests/tools/test_show_keeper
$(tool_host_tests): private LDADD = $(preload_test_libs) $(test_libs) libdmutex/libdmutex.la
$(tool_host_tests): $(preload_test_libs) tools/dmutex$(EXEEXT)
$(tool_tests): private LDADD = tests/tools/libtool.la $(test_libs) libdmutex/libdmutex.la
$(tool_tests): tests/tools/libtool.la tools/dmutex$(EXEEXT)
$(tool_tls_tests): private LDADD = tests/tools/libtool.la tests/lib/libtls.la $(test_libs) libdmutex/libdmutex.la
$(tool_tls_tests): tests/tools/libtool.la tests/lib/libtls.la tools/dmutex$(EXEEXT)

# not programs
script_tests = \
    tests/abi/test_interface.sh \
    tests/conformance/cpp/test_classes.sh \
    tests/conformance/dropin/test_automatic.sh \
    tests/conformance/dropin/test_compiles.sh \
    tests/conformance/dropin/test_names.sh \
    tests/conformance/test_sentences.sh \
    tests/floors/test_dist.sh \
    tests/floors/test_floors.sh \
    tests/floors/test_packages.sh \
    tests/floors/test_preload_floors.sh \
    tests/floors/test_scratch.sh \
    tests/tools/test_bench_peers.sh \
    tests/tools/test_completion.sh \
    tests/tools/test_unit.sh \
    tests/tools/test_dmutex_bench.sh \
    tests/tools/test_dmutex_names.sh
if HAVE_GDB
script_tests += tests/tools/test_gdb.sh
endif
if HAVE_TMUX
script_tests += tests/tools/test_screens.sh
endif
if HAVE_PROBES
script_tests += tests/tools/test_probes.sh
endif
if HARDENING
script_tests += tests/floors/test_hardening.sh
endif

# the pages: what they show is run, by programs without a sanitizer
script_tests += tests/doc/test_links.sh tests/doc/test_messages.sh
if PLAIN_BUILD
script_tests += tests/doc/test_guide.sh tests/doc/test_shell.sh
if HAVE_AUTOTOOLS
script_tests += tests/doc/test_recipe_autotools.sh
endif
if HAVE_CMAKE
script_tests += tests/doc/test_recipe_cmake.sh
endif
if HAVE_MESON
script_tests += tests/doc/test_recipe_meson.sh
endif
if HAVE_POSTGRES
script_tests += tests/doc/test_recipe_postgres.sh
endif
if HAVE_HTML
script_tests += tests/doc/test_html.sh
endif
endif
EXTRA_DIST += \
    tests/abi/check.sh \
    tests/abi/interface \
    tests/abi/libdmutex.abi \
    tests/abi/list.sh \
    tests/doc/links.awk \
    tests/doc/literals.awk \
    tests/doc/match.awk \
    tests/doc/page.awk \
    tests/doc/page.sh \
    tests/doc/test_guide.sh \
    tests/doc/test_html.sh \
    tests/doc/test_recipe_autotools.sh \
    tests/doc/test_recipe_cmake.sh \
    tests/doc/test_recipe_meson.sh \
    tests/doc/test_recipe_postgres.sh \
    tests/doc/test_shell.sh \
    tests/floors/test_hardening.sh \
    tests/tools/test_gdb.sh \
    tests/tools/test_probes.sh \
    tests/tools/test_screens.sh \
    tests/conformance/cpp/classes.cc \
    tests/conformance/dropin/layout.cc \
    tests/conformance/dropin/locals.cc \
    tests/conformance/dropin/unmapped \
    tests/conformance/dropin/uses.c

# with programs of Debian, which are downloaded for it: not in TESTS, but `make check-programs`
debian_tests = \
    tests/programs/test_cmake.sh \
    tests/programs/test_cron.sh \
    tests/programs/test_flock.sh \
    tests/programs/test_globals.sh \
    tests/programs/test_harmless.sh \
    tests/programs/test_lmdb.sh \
    tests/programs/test_lock_files.sh \
    tests/programs/test_offsets.sh \
    tests/programs/test_recipes.sh
EXTRA_DIST += \
    $(debian_tests) \
    tests/lib/metrics.awk \
    tests/lib/server.sh \
    tests/lib/tap.sh \
    tests/programs/increments.py \
    tests/programs/recipes/CMakeLists.txt \
    tests/programs/recipes/Makefile.am \
    tests/programs/recipes/configure.ac \
    tests/programs/recipes/main.c \
    tests/programs/recipes/meson.build \
    tests/programs/lib.sh \
    tests/programs/memcached_load.py \
    tests/programs/tally/cxx.cc \
    tests/programs/tally/library.c \
    tests/programs/tally/main.c \
    tests/programs/tally/tally.h \
    tests/programs/threads.py \
    tests/programs/vanish.sh \
    tests/programs/with-packages.sh

# fork() after the first thread: the thread sanitizer cannot follow these, and cannot be loaded into
# programs that know nothing of it; and it complains of a thread that is cancelled in sigwait() (test_run_l...)
TSAN_SKIP = tests/conformance/test_fork tests/server/test_tls_network tests/server/test_exit tests/server/test_forks tests/server/test_fork_handler tests/server/test_loop_thread tests/server/test_orphans tests/conformance/shalls/test_shalls tests/server/test_conditions \
    tests/server/test_cond_cancel tests/server/test_cond_ends tests/server/test_cond_forks tests/server/test_cond_storm tests/server/test_kept_ends \
    tests/registers/test_forks tests/registers/test_postgres_forks \
    tests/chaos/test_takeover tests/tools/test_run_lock tests/tools/test_run_loss tests/tools/test_screens.sh \
    tests/doc/test_guide.sh tests/doc/test_recipe_autotools.sh tests/doc/test_recipe_cmake.sh tests/doc/test_recipe_meson.sh tests/doc/test_recipe_postgres.sh \
    tests/preload/test_calls tests/preload/test_conds tests/preload/test_harmless tests/preload/test_mappings tests/preload/test_run_cluster \
    tests/preload/test_names tests/preload/test_places tests/preload/test_reports tests/faults/test_faults \
    tests/libc/conformance/test_fork.sh tests/libc/conformance/shalls/test_shalls.sh \
    tests/linger/server/test_conditions.sh tests/linger/server/test_forks.sh

# ---------------------------------------------------------------------------
# What the tests share
# ---------------------------------------------------------------------------
tests_lib_libtest_la_LIBADD = $(HIREDIS_LIBS)
tests_lib_libtest_la_SOURCES = \
    tests/lib/actor.c \
    tests/lib/actor.h \
    tests/lib/actor_conditions.c \
    tests/lib/actor_parts.h \
    tests/lib/actor_serve.c \
    tests/lib/clusters.c \
    tests/lib/clusters.h \
    tests/lib/clusters_moves.c \
    tests/lib/command.c \
    tests/lib/command.h \
    tests/lib/crowd.c \
    tests/lib/crowd.h \
    tests/lib/filter.c \
    tests/lib/filter.h \
    tests/lib/folder.c \
    tests/lib/folder.h \
    tests/lib/hosts.c \
    tests/lib/hosts.h \
    tests/lib/impostor.c \
    tests/lib/impostor.h \
    tests/lib/keeper.c \
    tests/lib/keeper.h \
    tests/lib/late.c \
    tests/lib/late.h \
    tests/lib/lines.c \
    tests/lib/lines.h \
    tests/lib/mutexes.c \
    tests/lib/mutexes.h \
    tests/lib/one_node.h \
    tests/lib/proc.c \
    tests/lib/proc.h \
    tests/lib/proxy.c \
    tests/lib/proxy.h \
    tests/lib/proxy_orders.h \
    tests/lib/proxy_serve.c \
    tests/lib/range.h \
    tests/lib/sentinels.c \
    tests/lib/sentinels.h \
    tests/lib/server.c \
    tests/lib/server.h \
    tests/lib/side.c \
    tests/lib/side.h \
    tests/lib/storm.c \
    tests/lib/storm.h \
    tests/lib/stranger.c \
    tests/lib/stranger.h \
    tests/lib/talker.c \
    tests/lib/talker.h \
    tests/lib/testlib.c \
    tests/lib/testlib.h \
    tests/lib/tracer.c \
    tests/lib/tracer.h \
    tests/lib/wait.c \
    tests/lib/wait.h

test_libs = tests/lib/libtest.la $(CMOCKA_LIBS)
LDADD = $(test_libs) libdmutex/libdmutex.la

# ---------------------------------------------------------------------------
# How they run
# ---------------------------------------------------------------------------
# The longest tests run first, so that the short ones fill the end: the faults and the simulator, then those that wait
# most.
program_tests =
if HAVE_CMOCKA
check_LTLIBRARIES += tests/lib/libtest.la tests/preload/libhelp.la tests/preload/libparts.la tests/server/libhelp.la
if HAVE_TLS
check_LTLIBRARIES += tests/lib/libtls.la
endif
check_LTLIBRARIES += tests/registers/libdriver.la tests/registers/libprocess.la tests/registers/libmemory.la tests/faults/libfail.la tests/fuzz/libdriver.la tests/fuzz/libtext.la
check_LTLIBRARIES += tests/registers/libasker.la tests/registers/libredisbed.la
check_LTLIBRARIES += tests/chaos/libchaos.la tests/chaos/libclocks.la tests/chaos/skew.la tests/tools/libtool.la
if HAVE_LIBLUA
check_LTLIBRARIES += tests/sim/libsim.la
check_PROGRAMS += tests/sim/sim
endif
program_tests += $(fault_tests)
if HAVE_LIBLUA
program_tests += $(sim_tests) $(fuzz_sim_tests)
endif
program_tests += $(redis_registers_tests) $(server_tests) $(tool_tests) $(tool_tls_tests) $(tool_host_tests)
program_tests += $(redis_registers_tests) $(server_tests) $(tool_tests) $(tool_tls_tests) $(tool_host_tests)
program_tests += $(chaos_tests) $(conformance_tests) $(preload_tests)
short_tests = $(module_tests) $(fuzz_tests) $(unit_tests)
check_PROGRAMS += $(registers_tests) $(program_tests) $(short_tests) $(store_tests) $(group_programs)
second_runs = $(libc_tests) $(linger_tests)
check_PROGRAMS += tests/preload/locker tests/server/loads_late tests/server/in_constructor $(outsiders)
check_PROGRAMS += $(dropin_programs)
check_PROGRAMS += tests/conformance/shalls/shalls_pthread tests/conformance/shalls/shalls_dmutex
endif
TESTS = $(registers_tests) $(program_tests) $(second_runs) $(script_tests) $(short_tests)

EXTRA_DIST += $(script_tests) tests/README.md

# Seconds for one program, so that a hanging test fails.  This is not a speed test: the longest takes a tenth of it
# alone, and five times as long while eight programs spin.
TEST_TIMEOUT = 600

TEST_EXTENSIONS = .sh
LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
LOG_COMPILER = timeout -k 5 $(TEST_TIMEOUT) $(TEST_WRAPPER)
SH_LOG_DRIVER = $(LOG_DRIVER)
SH_LOG_COMPILER = timeout -k 5 $(TEST_TIMEOUT) $(SHELL)

# Nothing from the user's environment may reach a test.
AM_TESTS_ENVIRONMENT = \
    unset DMUTEX_URL DMUTEX_HOST DMUTEX_LOG DMUTEX_METRICS DMUTEX_LINGER DMUTEX_ONDOWN DMUTEX_ONLOST; \
    unset DMUTEX_LOCAL DMUTEX_LOCAL_DIR DMUTEX_PRIVATE; \
    export XDG_CONFIG_HOME=/nonexistent; \
    unset DMUTEX_CONF DMUTEX_MAP DMUTEX_RULES DMUTEX_LIST DMUTEX_REPORT; \
    export CMOCKA_MESSAGE_OUTPUT=TAP; \
    export DMUTEX_TEST_LONG='$(DMUTEX_TEST_LONG)' DMUTEX_TEST_SERVER='$(REDIS_SERVER)'; \
    export ASAN_OPTIONS="detect_stack_use_after_return=1 $$ASAN_OPTIONS"; \
    export UBSAN_OPTIONS="print_stacktrace=1 $$UBSAN_OPTIONS"; \
    export TSAN_OPTIONS="ignore_noninstrumented_modules=1 $$TSAN_OPTIONS"; \
    export CC='$(CC)' CXX='$(CXX)' NM='$(NM)' PACKAGE_VERSION='$(PACKAGE_VERSION)'; \
    export HARDENING_FLAGS='$(HARDENING_CFLAGS) $(HARDENING_LDFLAGS) $(PIE_LDFLAGS)' LIBDIR='$(libdir)'; \
    export SANITIZER_CFLAGS='$(SANITIZER_CFLAGS)' CMARK_GFM='$(CMARK_GFM)'; \
    export GLIB_CFLAGS='$(GLIB_CFLAGS)' HIREDIS_CFLAGS='$(HIREDIS_CFLAGS)' LIBPQ_CFLAGS='$(LIBPQ_CFLAGS)' LIBMARIADB_CFLAGS='$(LIBMARIADB_CFLAGS)';

# Where the results are; for build-aux/sum-tests.
print-results:
	@echo $(TEST_LOGS:.log=.trs) $(store_tests:=.trs) $(group_tests:.sh=.trs)

print-dist:
	@echo $(DISTFILES)

# The same tests; those that repeat something at random see DMUTEX_TEST_LONG and do it longer.  With -j6 on two
# cores the four parts run together: the longest tests first, and programs that wait for minutes of the clock.
# The simulator and the models only compute, and are not niced for it: where the kernel has autogroups, others would
# wake up seconds late.
check-long:
	$(MAKE) check TESTS=
	$(MAKE) long-tests long-programs long-sim long-models
long-tests:
	$(MAKE) check DMUTEX_TEST_LONG=1 TEST_TIMEOUT=$(LONG_TIMEOUT) \
	    TESTS='$(group_tests) $(long_first) $(filter-out $(long_first) $(long_sim),$(TESTS)) $(store_tests) $(long_linger_tests)'
long-programs:
	$(MAKE) check-programs DMUTEX_TEST_LONG=1 DEBIAN_TIMEOUT=1800
long-sim:
	$(MAKE) check DMUTEX_TEST_LONG=1 TEST_TIMEOUT=$(LONG_TIMEOUT) TESTS='$(long_sim)' TEST_SUITE_LOG=tests/sim.log
long-models:
	$(MAKE) check-model DMUTEX_TEST_LONG=1
# An hour is too little for the moves of slots, and for the simulator, on a busy machine.
LONG_TIMEOUT = 7200
long_first = $(foreach test,tests/server/test_cond_storm tests/chaos/test_chaos,$(filter $(test),$(TESTS)))
long_sim = $(filter tests/sim/test_sim,$(TESTS))

# The library and the tools on stores that are neither Redis nor Valkey.
check-stores: all
	$(MAKE) check TESTS='$(store_tests)' TEST_SUITE_LOG=tests/stores.log

# Automake writes such rules for what is in TESTS alone.
$(addsuffix .log,$(store_tests)): %.log: %$(EXEEXT)
	@p='$<'; b='$*'; \
	$(am__check_pre) $(LOG_DRIVER) --test-name "$$f" --log-file $$b.log --trs-file $$b.trs \
	    $(am__common_driver_flags) $(AM_LOG_DRIVER_FLAGS) $(LOG_DRIVER_FLAGS) -- $(LOG_COMPILE) \
	    "$$tst" $(AM_TESTS_FD_REDIRECT)

# Sentinel, Cluster, a quorum and PostgreSQL under chaos.
check-groups: all
	$(MAKE) check TESTS='$(group_tests)' TEST_SUITE_LOG=tests/groups.log

# Unmodified programs, on two hosts.
check-programs: all
	$(SHELL) $(srcdir)/tests/programs/with-packages.sh \
	    $(MAKE) check TESTS='$(debian_tests)' TEST_TIMEOUT=$(DEBIAN_TIMEOUT) TEST_SUITE_LOG=tests/programs.log
DEBIAN_TIMEOUT = 300
print-debian-results:
	@echo $(debian_tests:.sh=.trs)
print-hiredis-results:
	@echo $(addprefix newest/,$(hiredis_tests:=.trs))

check-valgrind:
	@test -n '$(VALGRIND)' || { echo 'valgrind was not found by configure'; exit 1; }
	$(MAKE) check TESTS='$(unit_tests)' TEST_WRAPPER='$(VALGRIND) $(valgrind_flags)' TEST_TIMEOUT=600
valgrind_flags = --quiet --error-exitcode=99 --leak-check=full --show-leak-kinds=definite \
    --suppressions='$(abs_top_srcdir)/tests/unit/valgrind.supp'

# A sanitized tree is built below this one, with the same compiler and switches.
check-asan: asan/Makefile
	$(MAKE) -C asan check TEST_TIMEOUT=600
	$(MAKE) -C asan check-stores TEST_TIMEOUT=600
	$(MAKE) -C asan check-groups TEST_TIMEOUT=600
check-tsan: tsan/Makefile
	$(MAKE) -C tsan check TEST_TIMEOUT=1800 TESTS='$(filter-out $(TSAN_SKIP),$(TESTS))'
	$(MAKE) -C tsan check-stores TEST_TIMEOUT=1800
	$(MAKE) -C tsan check-groups TEST_TIMEOUT=600
asan/Makefile:
	$(MKDIR_P) $(@D)
	cd $(@D) && eval $(configure_again) --enable-sanitizer=address,undefined
tsan/Makefile:
	$(MKDIR_P) $(@D)
	cd $(@D) && eval $(configure_again) --enable-sanitizer=thread
# With the library's assertions and the newest hiredis inside: parts, the simulator, and the library on real servers.
# The tree is always new, since the folder of that hiredis is temporary.
hiredis_tests = $(unit_tests) $(fuzz_tests) $(filter-out tests/sim/test_sim_controls,$(sim_tests)) $(server_tests)
hiredis_programs = $(hiredis_tests) $(outsiders) \
    tests/conformance/test_stacks \
    tests/preload/locker \
    tests/server/in_constructor \
    tests/server/loads_late
check-hiredis:
	+$(SHELL) $(srcdir)/build-aux/with-hiredis $(MAKE) check-newest
check-newest:
	rm -rf newest && $(MKDIR_P) newest
	cd newest && eval $(configure_again) --enable-assertions $(build_fast)
	$(MAKE) -C newest check TESTS='$(hiredis_tests)' check_PROGRAMS='$(hiredis_programs)'

# The tests on PostgreSQL, with the versions of later suites, which are downloaded for it.
check-postgres: all
	for suite in trixie sid; do \
	    $(SHELL) $(srcdir)/build-aux/with-postgres $$suite $(MAKE) check TESTS='$(postgres_tests) $(on_postgres_tests)' || exit; \
	done

# On fresh systems, which are downloaded for it; as root.
check-systems:
	cd $(srcdir) && build-aux/check-systems

# For trees that only tests use; at -O1, gcc sees truncations that cannot be.
build_fast = "CFLAGS='-O1 -g0 -Wno-format-truncation'"
configure_again = "'$(abs_top_srcdir)/configure' $$(../config.status --config)"

# The interface for compiled programs: tests/abi/interface, which `make check` compares, and the same for abidiff, which
# is searched for when it runs.  update-abi records the current interface.
abi_dump = tests/abi/libdmutex.abi
check-abi: all
	$(SHELL) $(srcdir)/tests/abi/check.sh $(srcdir)/$(abi_dump) libdmutex/.libs/libdmutex.so
update-abi: all
	srcdir='$(srcdir)' CC='$(CC)' NM='$(NM)' $(SHELL) $(srcdir)/tests/abi/list.sh >$(srcdir)/tests/abi/interface
	abidw --no-show-locs --no-corpus-path --no-comp-dir-path --no-elf-needed --exported-interfaces-only --drop-undefined-syms \
	    libdmutex/.libs/libdmutex.so >libdmutex.abi.new && mv libdmutex.abi.new $(srcdir)/$(abi_dump)

# For builds of packages: tests of single parts, and some of the whole.  The other test programs are not built.
brief_tests = \
    $(unit_tests) \
    tests/conformance/test_ownership \
    tests/conformance/test_objects \
    tests/server/test_conditions
brief_scripts = \
    examples/run-examples.sh \
    tests/abi/test_interface.sh \
    tests/tools/test_completion.sh
check-short: all
	$(MAKE) check TESTS='$(brief_tests) $(brief_scripts)' check_PROGRAMS='$(brief_tests)' check_LTLIBRARIES=

# The models of the protocol, by SPIN, which is searched for when it runs: doc/design/models.md
check-model:
	srcdir='$(abs_top_srcdir)' CC='$(CC)' DMUTEX_TEST_LONG='$(DMUTEX_TEST_LONG)' \
	    $(SHELL) $(abs_top_srcdir)/tests/model/run-models.sh
EXTRA_DIST += \
    tests/model/cond.pml \
    tests/model/fork.pml \
    tests/model/line.pml \
    tests/model/lock.pml \
    tests/model/models \
    tests/model/reg_cond.pml \
    tests/model/reg_grace.pml \
    tests/model/reg_mark.pml \
    tests/model/reg_name.pml \
    tests/model/reg_session.pml \
    tests/model/reg_share.pml \
    tests/model/robust.pml \
    tests/model/run-models.sh \
    tests/model/quorum.pml \
    tests/model/switch.pml \
    tests/model/token.pml

clean-local:
	rm -rf asan newest tsan html tests/fuzz/clang
	rm -f tests/programs.log tests/groups.log tests/sim.log tests/stores.log

.PHONY: print-dist print-results print-debian-results check-groups check-abi update-abi check-short check-long long-tests long-programs long-sim long-models check-model check-programs check-valgrind check-asan check-stores check-tsan check-hiredis check-newest check-postgres check-systems print-hiredis-results
