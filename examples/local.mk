# Examples: one idea each, built with the library, not installed. ./quickstart demo runs `demo`;
# run-examples.sh runs all examples.
#
# A new example is a line here and in README.md, and a word in run-examples.sh and in Makefile.standalone.
example_programs = \
    examples/counter \
    examples/demo \
    examples/fencing \
    examples/lostlease \
    examples/queue \
    examples/recursive \
    examples/rendezvous \
    examples/robust \
    examples/timed
$(example_programs): private LDADD = libdmutex/libdmutex.la

# one source of plain pthread, compiled unchanged, and with one header in front
example_programs += examples/ported/before examples/ported/after
examples_ported_before_SOURCES = examples/ported/pool.c
examples_ported_before_CPPFLAGS =
examples_ported_before_CFLAGS = $(common_cflags)
examples_ported_before_LDADD =
examples_ported_after_SOURCES = examples/ported/pool.c
examples_ported_after_CPPFLAGS = \
    -I$(top_srcdir)/include -include dmutex/pthread.h -DDMUTEX_GROUP='"ported"' -fmacro-prefix-map=$(top_srcdir)/=
examples_ported_after_CFLAGS = $(common_cflags)
examples_ported_after_LDADD = libdmutex/libdmutex.la

# shows how to test a program that uses the library; not built without cmocka
example_tests = examples/ledger_test
examples_ledger_test_LDADD = $(CMOCKA_LIBS) libdmutex/libdmutex.la
if HAVE_CMOCKA
noinst_PROGRAMS += $(example_tests)
endif

# compares the mutex with a version column in PostgreSQL
if HAVE_POSTGRES
example_programs += examples/version_column
examples_version_column_CPPFLAGS = $(AM_CPPFLAGS) $(LIBPQ_CFLAGS)
examples_version_column_LDADD = $(LIBPQ_LIBS) libdmutex/libdmutex.la
endif

# and in MariaDB
if HAVE_MARIADB
example_programs += examples/version_column_mariadb
examples_version_column_mariadb_CPPFLAGS = $(AM_CPPFLAGS) $(LIBMARIADB_CFLAGS)
examples_version_column_mariadb_LDADD = $(LIBMARIADB_LIBS) libdmutex/libdmutex.la
endif

noinst_PROGRAMS += $(example_programs)

script_tests += examples/run-examples.sh

EXTRA_DIST += \
    examples/guarded.cc \
    examples/Makefile.standalone \
    examples/README.md \
    examples/ported/show.sh \
    examples/systemd/collector.service \
    examples/systemd/locks.acl
