# The tests: `make check` runs all of TESTS.
#
# A new test is a line in its group. It is linked to tests/lib and the shared library, as a user's
# program is. A test of a part says in a second line up to which floor it is linked instead, so that
# what it tests cannot call upward:  tests_unit_test_clock_LDADD = $(test_libs) $(up_to_base)

# ---------------------------------------------------------------------------
# Groups, one folder each
# ---------------------------------------------------------------------------
# one part, alone: no server, no other process
unit_tests =

# parts and the whole on a server of their own
server_tests =

# what POSIX says about each function
conformance_tests =

# not programs
script_tests = \
    tests/floors/test_floors.sh

# fork() after the first thread: the thread sanitizer cannot follow these
TSAN_SKIP =

# ---------------------------------------------------------------------------
# What the tests share
# ---------------------------------------------------------------------------
tests_lib_libtest_la_SOURCES =

test_libs = tests/lib/libtest.la $(CMOCKA_LIBS)
LDADD = $(test_libs) libdmutex/libdmutex.la

# ---------------------------------------------------------------------------
# How they run
# ---------------------------------------------------------------------------
if HAVE_CMOCKA
check_LTLIBRARIES += tests/lib/libtest.la
program_tests = $(unit_tests) $(server_tests) $(conformance_tests)
check_PROGRAMS += $(program_tests)
endif
TESTS = $(program_tests) $(script_tests)

EXTRA_DIST += $(script_tests)

# Seconds for one program; a hanging test is to fail, not to hang.
TEST_TIMEOUT = 120

TEST_EXTENSIONS = .sh
LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
LOG_COMPILER = timeout -k 5 $(TEST_TIMEOUT) $(TEST_WRAPPER)
SH_LOG_DRIVER = $(LOG_DRIVER)
SH_LOG_COMPILER = timeout -k 5 $(TEST_TIMEOUT) $(SHELL)

# Nothing from the user's environment may reach a test.
AM_TESTS_ENVIRONMENT = \
    unset DMUTEX_URL DMUTEX_HOST DMUTEX_LOG DMUTEX_LINGER DMUTEX_ONDOWN DMUTEX_ONLOST; \
    unset DMUTEX_SYNC_UNLOCK DMUTEX_LOCAL_DIR; \
    export CMOCKA_MESSAGE_OUTPUT=TAP; \
    export DMUTEX_TEST_LONG='$(DMUTEX_TEST_LONG)' DMUTEX_TEST_SERVER='$(REDIS_SERVER)'; \
    export ASAN_OPTIONS="detect_stack_use_after_return=1 $$ASAN_OPTIONS"; \
    export UBSAN_OPTIONS="print_stacktrace=1 $$UBSAN_OPTIONS"; \
    export TSAN_OPTIONS="ignore_noninstrumented_modules=1 $$TSAN_OPTIONS"; \
    export CC='$(CC)' CXX='$(CXX)' NM='$(NM)' PACKAGE_VERSION='$(PACKAGE_VERSION)'; \
    export GLIB_CFLAGS='$(GLIB_CFLAGS)' HIREDIS_CFLAGS='$(HIREDIS_CFLAGS)';

# Where the results are; for build-aux/sum-tests.
print-results:
	@echo $(TEST_LOGS:.log=.trs)

# The same tests; those that repeat something at random see DMUTEX_TEST_LONG and do it longer.
check-long:
	$(MAKE) check DMUTEX_TEST_LONG=1 TEST_TIMEOUT=1800

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

clean-local:
	rm -rf asan tsan

.PHONY: print-results check-long check-valgrind check-asan check-tsan
