# The tests: `make check` runs all of TESTS.
#
# A new test is a line in its group. It is linked to tests/lib and the shared library, as a user's
# program is. A test of a part says in a second line up to which floor it is linked instead, so that
# what it tests cannot call upward:  tests_unit_test_clock_LDADD = $(test_libs) $(up_to_base)

# ---------------------------------------------------------------------------
# Groups, one folder each
# ---------------------------------------------------------------------------
# one part, alone: no server, no other process
unit_tests = \
    tests/unit/test_attempt \
    tests/unit/test_attempt_cond \
    tests/unit/test_attempt_hold \
    tests/unit/test_attempt_store \
    tests/unit/test_attempt_walk \
    tests/unit/test_clean \
    tests/unit/test_clock \
    tests/unit/test_command \
    tests/unit/test_conffile \
    tests/unit/test_error \
    tests/unit/test_greeting \
    tests/unit/test_keys \
    tests/unit/test_order \
    tests/unit/test_place \
    tests/unit/test_posting \
    tests/unit/test_reply \
    tests/unit/test_url \
    tests/unit/test_verdict
tests_unit_test_attempt_LDADD = $(test_libs) $(up_to_core)
tests_unit_test_attempt_cond_LDADD = $(test_libs) $(up_to_core)
tests_unit_test_attempt_hold_LDADD = $(test_libs) $(up_to_core)
tests_unit_test_attempt_store_LDADD = $(test_libs) $(up_to_core)
tests_unit_test_attempt_walk_LDADD = $(test_libs) $(up_to_core)
tests_unit_test_clean_LDADD = $(test_libs) $(up_to_base)
tests_unit_test_clock_LDADD = $(test_libs) $(up_to_base)
tests_unit_test_command_LDADD = $(test_libs) $(up_to_redis)
tests_unit_test_conffile_LDADD = $(test_libs) $(up_to_api)
tests_unit_test_error_LDADD = $(test_libs) $(up_to_base)
tests_unit_test_greeting_LDADD = $(test_libs) $(up_to_redis)
tests_unit_test_keys_LDADD = $(test_libs) $(up_to_redis)
tests_unit_test_order_LDADD = $(test_libs) $(up_to_base)
tests_unit_test_place_LDADD = $(test_libs) $(up_to_api)
tests_unit_test_posting_LDADD = $(test_libs) $(up_to_redis)
tests_unit_test_reply_LDADD = $(test_libs) $(up_to_redis)
tests_unit_test_url_LDADD = $(test_libs) $(up_to_store)
tests_unit_test_verdict_LDADD = $(test_libs) $(up_to_store)
EXTRA_DIST += tests/unit/attempt_clock.h tests/unit/random.h

# parts and the whole on a server of their own
server_tests = \
    tests/server/test_cond_cancel \
    tests/server/test_cond_crowd \
    tests/server/test_cond_ends \
    tests/server/test_cond_forks \
    tests/server/test_cond_network \
    tests/server/test_cond_refused \
    tests/server/test_cond_server \
    tests/server/test_cond_storm \
    tests/server/test_conditions \
    tests/server/test_conn \
    tests/server/test_costs \
    tests/server/test_dead_waiters \
    tests/server/test_deaths \
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
    tests/server/test_late \
    tests/server/test_limits \
    tests/server/test_local \
    tests/server/test_local_strangers \
    tests/server/test_loop_thread \
    tests/server/test_logs \
    tests/server/test_loss \
    tests/server/test_many_holds \
    tests/server/test_network \
    tests/server/test_orphans \
    tests/server/test_remains \
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
    tests/server/test_scripts_own \
    tests/server/test_scripts_queue \
    tests/server/test_scripts_retry \
    tests/server/test_scripts_tokens \
    tests/server/test_server_faults \
    tests/server/test_server_refusals \
    tests/server/test_server_states \
    tests/server/test_switch \
    tests/server/test_testing \
    tests/server/test_testing_abandon \
    tests/server/test_turns
tests_server_test_local_strangers_LDADD = $(test_libs) $(up_to_api) # copies of it run where the library cannot be reached
# the Lua scripts, without the library
tests_server_test_cond_cancel_SOURCES = tests/server/test_cond_cancel.c tests/server/pair.c tests/server/pair.h
tests_server_test_cond_ends_SOURCES = tests/server/test_cond_ends.c tests/server/pair.c tests/server/pair.h
scripts_libs = tests/server/libscripts.la $(test_libs) $(up_to_api)
tests_server_test_conn_LDADD = $(test_libs) $(up_to_api)
tests_server_libscripts_la_SOURCES = tests/server/scripts.c tests/server/scripts.h
tests_server_test_scripts_cond_LDADD = $(scripts_libs)
tests_server_test_scripts_cond_broadcast_LDADD = $(scripts_libs)
tests_server_test_scripts_cond_death_LDADD = $(scripts_libs)
tests_server_test_scripts_cond_end_LDADD = $(scripts_libs)
tests_server_test_scripts_cond_faults_LDADD = $(scripts_libs)
tests_server_test_scripts_cond_retry_LDADD = $(scripts_libs)
tests_server_test_scripts_cond_signal_LDADD = $(scripts_libs)
tests_server_test_scripts_dead_LDADD = $(scripts_libs)
tests_server_test_scripts_death_LDADD = $(scripts_libs)
tests_server_test_scripts_faults_LDADD = $(scripts_libs)
tests_server_test_scripts_grace_LDADD = $(scripts_libs)
tests_server_test_scripts_own_LDADD = $(scripts_libs)
tests_server_test_scripts_queue_LDADD = $(scripts_libs)
tests_server_test_scripts_retry_LDADD = $(scripts_libs)
tests_server_test_scripts_tokens_LDADD = $(scripts_libs)

# what POSIX says about each function
conformance_tests = \
    tests/conformance/test_attributes \
    tests/conformance/test_clocks_apart \
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
tests_conformance_dropin_visits_anonymous_LDADD = libdmutex/libdmutex.la
tests_conformance_dropin_visits_group_SOURCES = $(visits_sources)
tests_conformance_dropin_visits_group_CPPFLAGS = $(dropin_cppflags) -DDMUTEX_GROUP='"dropin"'
tests_conformance_dropin_visits_group_LDADD = libdmutex/libdmutex.la
tests_conformance_dropin_visits_longest_SOURCES = $(visits_sources)
tests_conformance_dropin_visits_longest_CPPFLAGS = $(dropin_long_cppflags) -DDMUTEX_UNIT=LONGEST
tests_conformance_dropin_visits_longest_LDADD = libdmutex/libdmutex.la
tests_conformance_dropin_visits_named_SOURCES = $(visits_sources)
tests_conformance_dropin_visits_named_CPPFLAGS = $(dropin_cppflags) -DNAME='"dropin/set"'
tests_conformance_dropin_visits_named_LDADD = libdmutex/libdmutex.la
tests_conformance_dropin_visits_unit_SOURCES = $(visits_sources)
tests_conformance_dropin_visits_unit_CPPFLAGS = \
    $(dropin_cppflags) -DDMUTEX_GROUP='"dropin"' -DDMUTEX_UNIT='"ledger"'
tests_conformance_dropin_visits_unit_LDADD = libdmutex/libdmutex.la
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
    tests/preload/test_kernel_lock \
    tests/preload/test_lockfile_crowd \
    tests/preload/test_lockfile_fcntl \
    tests/preload/test_lockfile_flock \
    tests/preload/test_lockfile_keeper \
    tests/preload/test_lockfile_strangers \
    tests/preload/test_run \
    tests/preload/test_run_config \
    tests/preload/test_run_list \
    tests/preload/test_run_loaded \
    tests/preload/test_run_program \
    tests/preload/test_run_rules \
    tests/preload/test_run_secret \
    tests/preload/test_run_unused
run_parts = tests/preload/run.c tests/preload/run.h
run_libs = $(test_libs) preload/librun.la libdmutex/libdmutex.la
tests_preload_test_run_SOURCES = tests/preload/test_run.c $(run_parts)
tests_preload_test_run_config_SOURCES = tests/preload/test_run_config.c $(run_parts)
tests_preload_test_run_config_LDADD = $(run_libs)
tests_preload_test_run_list_SOURCES = tests/preload/test_run_list.c $(run_parts)
tests_preload_test_run_loaded_SOURCES = tests/preload/test_run_loaded.c $(run_parts)
tests_preload_test_run_loaded_LDADD = $(run_libs)
tests_preload_test_run_program_SOURCES = tests/preload/test_run_program.c $(run_parts)
tests_preload_test_run_program_LDADD = $(run_libs)
tests_preload_test_run_rules_SOURCES = tests/preload/test_run_rules.c $(run_parts)
tests_preload_test_run_secret_SOURCES = tests/preload/test_run_secret.c $(run_parts)
tests_preload_test_run_unused_SOURCES = tests/preload/test_run_unused.c $(run_parts)
# two hosts, with lock files
tests_preload_libhost_la_SOURCES = tests/preload/host.c tests/preload/host.h
host_libs = tests/preload/libhost.la $(LDADD)
tests_preload_test_lockfile_crowd_LDADD = $(host_libs)
tests_preload_test_lockfile_fcntl_LDADD = $(host_libs)
tests_preload_test_lockfile_flock_LDADD = $(host_libs)
tests_preload_test_lockfile_keeper_LDADD = $(host_libs)
tests_preload_test_lockfile_strangers_LDADD = $(host_libs)
tests_preload_test_kernel_lock_SOURCES = \
    tests/preload/test_kernel_lock.c preload/shared/kernel_lock.c preload/shared/text.c
# a program to be run under the module: without a sanitizer, which would have to come first
tests_preload_locker_CFLAGS = -std=gnu11 -pthread $(WARNING_CFLAGS)
tests_preload_locker_LDADD =

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
    tests/preload/test_text
tests_preload_test_calls_LDADD = $(programs_libs)
tests_preload_test_conds_LDADD = $(programs_libs)
tests_preload_test_elffile_LDADD = tests/preload/libparts.la $(programs_libs)
tests_preload_test_harmless_LDADD = $(programs_libs)
tests_preload_test_mappings_LDADD = $(programs_libs)
tests_preload_test_maps_LDADD = tests/preload/libparts.la $(LDADD)
tests_preload_test_names_LDADD = $(programs_libs)
tests_preload_test_places_LDADD = $(programs_libs)
tests_preload_test_reports_LDADD = $(programs_libs)
tests_preload_test_rules_LDADD = tests/preload/libparts.la $(CMOCKA_LIBS)
tests_preload_test_text_LDADD = tests/preload/libparts.la $(CMOCKA_LIBS)
# parts of the module, for the tests of these alone
tests_preload_libparts_la_CFLAGS = $(common_cflags)
tests_preload_libparts_la_SOURCES = preload/module/base/memory.c preload/module/base/settings.c preload/module/names/maps.c $(preload_common)
# the programs are compiled by the tests
programs_libs = tests/preload/libprograms.la $(LDADD)
tests_preload_libprograms_la_CPPFLAGS = $(AM_CPPFLAGS) \
    -DPROGRAMS='"$(abs_top_srcdir)/tests/preload/programs"'
tests_preload_libprograms_la_SOURCES = \
    tests/preload/naming.c \
    tests/preload/naming.h \
    tests/preload/programs.c \
    tests/preload/programs.h
EXTRA_DIST += \
    tests/preload/programs/beside.c \
    tests/preload/programs/forker.c \
    tests/preload/programs/guard.cc \
    tests/preload/programs/legacy.c \
    tests/preload/programs/legacy.h \
    tests/preload/programs/legacy_around.c \
    tests/preload/programs/legacy_calls.c \
    tests/preload/programs/places.c \
    tests/preload/programs/places.h \
    tests/preload/programs/places_library.c \
    tests/preload/programs/shelf.c \
    tests/preload/programs/symbols.c \
    tests/preload/programs/symbols_again.c

# everything that can fail fails once; with libc's functions once more in the program
fault_tests = tests/faults/test_faults
tests_faults_test_faults_LDFLAGS = $(AM_LDFLAGS) -Wl,--export-dynamic
tests_faults_test_faults_LDADD = tests/faults/libfail.la $(LDADD)
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

# the simulator, and what it believes of servers
sim_tests = \
    tests/sim/test_sim \
    tests/sim/test_sim_controls \
    tests/sim/test_store
tests_sim_libsim_la_CPPFLAGS = $(AM_CPPFLAGS) $(LIBLUA_CFLAGS)
tests_sim_libsim_la_LIBADD = $(LIBLUA_LIBS)
tests_sim_libsim_la_SOURCES = \
    tests/sim/commands.c \
    tests/sim/commands.h \
    tests/sim/scripting.c \
    tests/sim/scripting.h \
    tests/sim/store.c \
    tests/sim/store.h
# the library's own parts but for clocks, threads, connection and loop; what calls the core and the
# state lock comes by the simulator
sim_sources = \
    libdmutex/runtime/lifetime.c \
    tests/sim/check.c \
    tests/sim/check.h \
    tests/sim/check_parts.h \
    tests/sim/conn.c \
    tests/sim/conn_come.c \
    tests/sim/conn_parts.h \
    tests/sim/faults.c \
    tests/sim/faults.h \
    tests/sim/fiber.c \
    tests/sim/fiber.h \
    tests/sim/hooks.c \
    tests/sim/hooks.h \
    tests/sim/judge.c \
    tests/sim/look.c \
    tests/sim/net.c \
    tests/sim/net.h \
    tests/sim/process.c \
    tests/sim/process.h \
    tests/sim/run.c \
    tests/sim/run.h \
    tests/sim/server.c \
    tests/sim/server.h \
    tests/sim/work.c \
    tests/sim/work.h \
    tests/sim/world.c \
    tests/sim/world.h
sim_cflags = $(AM_CFLAGS) -fexceptions
sim_wraps = \
    -Wl,--wrap=dm_attempt_step \
    -Wl,--wrap=dm_redis_hear \
    -Wl,--wrap=dm_state_lock \
    -Wl,--wrap=dm_state_unlock \
    -Wl,--wrap=pthread_setcancelstate
sim_ldflags = $(AM_LDFLAGS) $(sim_wraps)
sim_libs = tests/sim/libsim.la $(up_to_runtime)
tests_sim_sim_SOURCES = tests/sim/sim.c $(sim_sources)
tests_sim_sim_CFLAGS = $(sim_cflags)
tests_sim_sim_LDFLAGS = $(sim_ldflags)
tests_sim_sim_LDADD = $(sim_libs)
tests_sim_test_sim_SOURCES = tests/sim/test_sim.c $(sim_sources)
tests_sim_test_sim_CFLAGS = $(sim_cflags)
tests_sim_test_sim_LDFLAGS = $(sim_ldflags)
tests_sim_test_sim_LDADD = $(sim_libs) $(CMOCKA_LIBS)
tests_sim_test_sim_controls_SOURCES = tests/sim/test_sim_controls.c $(sim_sources)
tests_sim_test_sim_controls_CFLAGS = $(sim_cflags)
tests_sim_test_sim_controls_LDFLAGS = $(sim_ldflags)
tests_sim_test_sim_controls_LDADD = $(sim_libs) $(CMOCKA_LIBS)
tests_sim_test_store_LDADD = tests/sim/libsim.la $(test_libs) $(up_to_api)

EXTRA_DIST += tests/sim/README.md

# fuzzers, each with a driver of our own
fuzz_tests = \
    tests/fuzz/test_config \
    tests/fuzz/test_connection \
    tests/fuzz/test_messages \
    tests/fuzz/test_names \
    tests/fuzz/test_replies \
    tests/fuzz/test_rules \
    tests/fuzz/test_settings \
    tests/fuzz/test_url
fuzz_sim_tests = tests/fuzz/test_sim
tests_fuzz_libdriver_la_SOURCES = tests/fuzz/driver.c tests/fuzz/fuzz.h
tests_fuzz_libtext_la_SOURCES = tests/fuzz/text.c
fuzz_libs = tests/fuzz/libdriver.la tests/fuzz/libtext.la
tests_fuzz_test_config_SOURCES = tests/fuzz/config.c
tests_fuzz_test_config_LDADD = $(fuzz_libs) preload/librun.la $(up_to_api)
tests_fuzz_test_connection_SOURCES = tests/fuzz/connection.c
tests_fuzz_test_connection_LDADD = $(fuzz_libs) $(up_to_redis)
tests_fuzz_test_messages_SOURCES = tests/fuzz/messages.c
tests_fuzz_test_messages_LDADD = $(fuzz_libs) $(up_to_runtime)
tests_fuzz_test_names_SOURCES = tests/fuzz/names.c
tests_fuzz_test_names_LDADD = $(fuzz_libs) $(up_to_api)
tests_fuzz_test_replies_SOURCES = tests/fuzz/replies.c
tests_fuzz_test_replies_LDADD = $(fuzz_libs) $(up_to_redis)
tests_fuzz_test_rules_SOURCES = tests/fuzz/rules.c
tests_fuzz_test_rules_LDADD = $(fuzz_libs) preload/librun.la
tests_fuzz_test_settings_SOURCES = tests/fuzz/settings.c
tests_fuzz_test_settings_LDADD = $(fuzz_libs) $(up_to_runtime)
tests_fuzz_test_sim_SOURCES = tests/fuzz/sim.c $(sim_sources)
tests_fuzz_test_sim_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/sim
tests_fuzz_test_sim_CFLAGS = $(sim_cflags)
tests_fuzz_test_sim_LDFLAGS = $(sim_ldflags)
tests_fuzz_test_sim_LDADD = $(fuzz_libs) $(sim_libs)
tests_fuzz_test_url_SOURCES = tests/fuzz/url.c
tests_fuzz_test_url_LDADD = $(fuzz_libs) $(up_to_store)

# The same by libFuzzer, with clang, in a folder of its own: `make fuzz`.  All that they test is one
# archive, out of which each takes what it does not stand in the place of.
fuzz: tests/fuzz/clang/parts.a tests/fuzz/clang/libsim.a
	$(AM_V_at)for test in $(fuzz_tests) $(fuzz_sim_tests); do \
	    name=$${test##*/test_}; wraps=; sim=; \
	    test $$name != sim || { wraps='$(sim_wraps)'; sim='$(clang_sim)'; }; \
	    echo "  CCLD     tests/fuzz/clang/$$name"; \
	    $(clang_compile) -fsanitize=fuzzer $$wraps -o tests/fuzz/clang/$$name $(srcdir)/tests/fuzz/$$name.c \
	        $(srcdir)/tests/fuzz/text.c $$sim tests/fuzz/clang/parts.a \
	        $(LIBLUA_LIBS) $(HIREDIS_LIBS) $(GLIB_LIBS) -ldl || exit; \
	done
clang_sim = $(srcdir)/libdmutex/runtime/lifetime.c tests/fuzz/clang/libsim.a
# what gcc says of itself clang is told
clang_compile = $(CLANG) -fsanitize=address,undefined -D__SANITIZE_ADDRESS__ -fno-sanitize-recover=all -O1 -g \
    -std=gnu11 -pthread -fexceptions \
    $(DEFS) -I. $(AM_CPPFLAGS) -I$(srcdir)/tests/sim -DBINDIR='"$(bindir)"' -DPKGLIBDIR='"$(pkglibdir)"' \
    $(LIBLUA_CFLAGS) $(HIREDIS_CFLAGS) $(GLIB_CFLAGS)
clang_archive = \
    test -n '$(CLANG)' || { echo 'clang was not found by configure'; exit 1; }; \
    $(MKDIR_P) $(@D); rm -f $@; \
    for source in $(filter %.c,$^); do \
	object=tests/fuzz/clang/`echo $${source\#\#*../} | tr / _`.o; \
	echo "  CC       $$object"; \
	$(clang_compile) -fsanitize=fuzzer-no-link -c -o $$object $$source && $(AR) cr $@ $$object || exit; \
    done
tests/fuzz/clang/parts.a: \
    $(libdmutex_libbase_la_SOURCES) $(libdmutex_libcore_la_SOURCES) $(libdmutex_libstore_la_SOURCES) \
    $(libdmutex_liblink_la_SOURCES) $(libdmutex_libredis_la_SOURCES) \
    $(libdmutex_libruntime_la_SOURCES) $(libdmutex_libapi_la_SOURCES) libdmutex/redis/scripts.c $(preload_librun_la_SOURCES)
	$(AM_V_at)$(clang_archive)
tests/fuzz/clang/libsim.a: $(tests_sim_libsim_la_SOURCES) $(filter tests/%,$(sim_sources))
	$(AM_V_at)$(clang_archive)
.PHONY: fuzz

# many processes on a real server, and real faults
chaos_tests = \
    tests/chaos/test_chaos \
    tests/chaos/test_check \
    tests/chaos/test_failovers \
    tests/chaos/test_promotions \
    tests/chaos/test_takeover
tests_chaos_libchaos_la_SOURCES = \
    tests/chaos/check.c \
    tests/chaos/check.h \
    tests/chaos/clocks.h \
    tests/chaos/dice.h \
    tests/chaos/history.c \
    tests/chaos/history.h \
    tests/chaos/nemesis.c \
    tests/chaos/nemesis.h \
    tests/chaos/resource.c \
    tests/chaos/resource.h \
    tests/chaos/round.c \
    tests/chaos/round.h \
    tests/chaos/stage.c \
    tests/chaos/stage.h \
    tests/chaos/worker.c \
    tests/chaos/worker.h
chaos_libs = tests/chaos/libchaos.la $(LDADD)
# the program itself stands in for libc's clocks
tests_chaos_test_chaos_SOURCES = tests/chaos/test_chaos.c tests/chaos/clocks.c
tests_chaos_test_chaos_LDADD = $(chaos_libs)
tests_chaos_test_failovers_SOURCES = tests/chaos/test_failovers.c tests/chaos/clocks.c
tests_chaos_test_failovers_LDADD = $(chaos_libs)
tests_chaos_test_promotions_SOURCES = tests/chaos/test_promotions.c tests/chaos/clocks.c
tests_chaos_test_promotions_LDADD = $(chaos_libs)
tests_chaos_test_takeover_LDADD = $(chaos_libs)
tests_chaos_test_check_LDADD = $(chaos_libs)

# not programs
script_tests = \
    tests/conformance/dropin/test_automatic.sh \
    tests/conformance/dropin/test_compiles.sh \
    tests/conformance/dropin/test_names.sh \
    tests/conformance/test_sentences.sh \
    tests/floors/test_floors.sh \
    tests/floors/test_preload_floors.sh \
    tests/tools/test_dmutex_names.sh
if HARDENING
script_tests += tests/floors/test_hardening.sh
endif
EXTRA_DIST += \
    tests/floors/test_hardening.sh \
    tests/conformance/dropin/layout.cc \
    tests/conformance/dropin/locals.cc \
    tests/conformance/dropin/unmapped \
    tests/conformance/dropin/uses.c

# with programs of Debian, which are downloaded for it: not in TESTS, but `make check-programs`
debian_tests = \
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

# fork() after the first thread: the thread sanitizer cannot follow these; nor can it be loaded into
# programs that know nothing of it
TSAN_SKIP = tests/conformance/test_fork tests/server/test_forks tests/server/test_fork_handler tests/server/test_loop_thread tests/server/test_orphans tests/conformance/shalls/test_shalls tests/server/test_conditions \
    tests/server/test_cond_cancel tests/server/test_cond_ends tests/server/test_cond_forks tests/server/test_cond_storm tests/chaos/test_takeover \
    tests/preload/test_calls tests/preload/test_conds tests/preload/test_harmless tests/preload/test_mappings \
    tests/preload/test_names tests/preload/test_places tests/preload/test_reports tests/faults/test_faults \
    tests/libc/conformance/test_fork.sh tests/libc/conformance/shalls/test_shalls.sh

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
    tests/lib/command.c \
    tests/lib/command.h \
    tests/lib/crowd.c \
    tests/lib/crowd.h \
    tests/lib/keeper.c \
    tests/lib/keeper.h \
    tests/lib/late.c \
    tests/lib/late.h \
    tests/lib/mutexes.c \
    tests/lib/mutexes.h \
    tests/lib/proc.c \
    tests/lib/proc.h \
    tests/lib/proxy.c \
    tests/lib/proxy.h \
    tests/lib/proxy_orders.h \
    tests/lib/proxy_serve.c \
    tests/lib/server.c \
    tests/lib/server.h \
    tests/lib/side.c \
    tests/lib/side.h \
    tests/lib/stranger.c \
    tests/lib/stranger.h \
    tests/lib/testlib.c \
    tests/lib/testlib.h \
    tests/lib/wait.c \
    tests/lib/wait.h

test_libs = tests/lib/libtest.la $(CMOCKA_LIBS)
LDADD = $(test_libs) libdmutex/libdmutex.la

# ---------------------------------------------------------------------------
# How they run
# ---------------------------------------------------------------------------
# The groups that have the longest tests begin, so that the short ones fill the end.
program_tests =
if HAVE_CMOCKA
check_LTLIBRARIES += tests/lib/libtest.la tests/preload/libhost.la tests/server/libscripts.la
check_LTLIBRARIES += tests/preload/libparts.la tests/preload/libprograms.la tests/faults/libfail.la
check_LTLIBRARIES += tests/fuzz/libdriver.la tests/fuzz/libtext.la tests/chaos/libchaos.la
if HAVE_LIBLUA
check_LTLIBRARIES += tests/sim/libsim.la
program_tests += $(sim_tests) $(fuzz_sim_tests)
check_PROGRAMS += tests/sim/sim
endif
program_tests += $(chaos_tests) $(fault_tests) $(server_tests) $(preload_tests) $(conformance_tests)
short_tests = $(module_tests) $(fuzz_tests) $(unit_tests)
check_PROGRAMS += $(program_tests) $(short_tests)
second_runs = $(libc_tests)
check_PROGRAMS += tests/preload/locker
check_PROGRAMS += $(dropin_programs)
check_PROGRAMS += tests/conformance/shalls/shalls_pthread tests/conformance/shalls/shalls_dmutex
endif
TESTS = $(program_tests) $(second_runs) $(script_tests) $(short_tests)

EXTRA_DIST += $(script_tests) tests/README.md

# Seconds for one program; a hanging test is to fail, not to hang.  No measure of speed: the longest takes a tenth
# of it alone, and five times that beside eight programs that spin.
TEST_TIMEOUT = 600

TEST_EXTENSIONS = .sh
LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
LOG_COMPILER = timeout -k 5 $(TEST_TIMEOUT) $(TEST_WRAPPER)
SH_LOG_DRIVER = $(LOG_DRIVER)
SH_LOG_COMPILER = timeout -k 5 $(TEST_TIMEOUT) $(SHELL)

# Nothing from the user's environment may reach a test.
AM_TESTS_ENVIRONMENT = \
    unset DMUTEX_URL DMUTEX_HOST DMUTEX_LOG DMUTEX_LINGER DMUTEX_ONDOWN DMUTEX_ONLOST; \
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
    export SANITIZER_CFLAGS='$(SANITIZER_CFLAGS)'; \
    export GLIB_CFLAGS='$(GLIB_CFLAGS)' HIREDIS_CFLAGS='$(HIREDIS_CFLAGS)';

# Where the results are; for build-aux/sum-tests.
print-results:
	@echo $(TEST_LOGS:.log=.trs)

# The same tests; those that repeat something at random see DMUTEX_TEST_LONG and do it longer.  With -j6 on two
# cores the four parts go on together: the longest tests first, and programs that wait for minutes of the clock.
# The simulator and the models only compute, and are not niced for it: where the kernel has autogroups, others would
# wake up seconds late.
check-long:
	$(MAKE) check TESTS=
	$(MAKE) long-tests long-programs long-sim long-models
long-tests:
	$(MAKE) check DMUTEX_TEST_LONG=1 TEST_TIMEOUT=3600 \
	    TESTS='$(long_first) $(filter-out $(long_first) $(long_sim),$(TESTS))'
long-programs:
	$(MAKE) check-programs DMUTEX_TEST_LONG=1 DEBIAN_TIMEOUT=1800
long-sim:
	$(MAKE) check DMUTEX_TEST_LONG=1 TEST_TIMEOUT=3600 TESTS='$(long_sim)' TEST_SUITE_LOG=tests/sim.log
long-models:
	$(MAKE) check-model DMUTEX_TEST_LONG=1
long_first = $(foreach test,tests/server/test_cond_storm tests/chaos/test_chaos,$(filter $(test),$(TESTS)))
long_sim = $(filter tests/sim/test_sim,$(TESTS))

# Unmodified programs, on two hosts.
check-programs: all
	$(SHELL) $(srcdir)/tests/programs/with-packages.sh \
	    $(MAKE) check TESTS='$(debian_tests)' TEST_TIMEOUT=$(DEBIAN_TIMEOUT) TEST_SUITE_LOG=tests/programs.log
DEBIAN_TIMEOUT = 300
print-debian-results:
	@echo $(debian_tests:.sh=.trs)

check-valgrind:
	@test -n '$(VALGRIND)' || { echo 'valgrind was not found by configure'; exit 1; }
	$(MAKE) check TESTS='$(unit_tests)' TEST_WRAPPER='$(VALGRIND) $(valgrind_flags)' TEST_TIMEOUT=600
valgrind_flags = --quiet --error-exitcode=99 --leak-check=full --show-leak-kinds=definite

# A sanitized tree is built below this one, with the same compiler and switches.
check-asan: asan/Makefile
	$(MAKE) -C asan check TEST_TIMEOUT=600
check-tsan: tsan/Makefile
	$(MAKE) -C tsan check TEST_TIMEOUT=600 TESTS='$(filter-out $(TSAN_SKIP),$(TESTS))'
asan/Makefile:
	$(MKDIR_P) $(@D)
	cd $(@D) && eval $(configure_again) --enable-sanitizer=address,undefined
tsan/Makefile:
	$(MKDIR_P) $(@D)
	cd $(@D) && eval $(configure_again) --enable-sanitizer=thread
configure_again = "'$(abs_top_srcdir)/configure' $$(../config.status --config)"

# The models of the protocol, by SPIN, which is looked for when it runs: doc/design/models.md
check-model:
	srcdir='$(abs_top_srcdir)' CC='$(CC)' DMUTEX_TEST_LONG='$(DMUTEX_TEST_LONG)' \
	    $(SHELL) $(abs_top_srcdir)/tests/model/run-models.sh
EXTRA_DIST += \
    tests/model/cond.pml \
    tests/model/fork.pml \
    tests/model/lock.pml \
    tests/model/models \
    tests/model/robust.pml \
    tests/model/run-models.sh

clean-local:
	rm -rf asan tsan tests/fuzz/clang
	rm -f tests/programs.log tests/sim.log

.PHONY: print-results print-debian-results check-long long-tests long-programs long-sim long-models check-model check-programs check-valgrind check-asan check-tsan
