# The library: one convenience library per floor, linked into one shared library.

# ---------------------------------------------------------------------------
# Public headers
# ---------------------------------------------------------------------------
dmutexincludedir = $(includedir)/dmutex
dmutexinclude_HEADERS = \
    include/dmutex/attr.h \
    include/dmutex/cond.h \
    include/dmutex/dmutex.h \
    include/dmutex/dmutex.hpp \
    include/dmutex/error.h \
    include/dmutex/mutex.h \
    include/dmutex/pthread.h \
    include/dmutex/stats.h \
    include/dmutex/testing.h \
    include/dmutex/types.h \
    include/dmutex/version.h

# Unwind tables: a thread may be cancelled inside a call of ours, and unwinds through it.  Not -fexceptions: the
# handlers of pthread_cleanup_push() would need libgcc_s, and its first call is bound on the stack of the cancelled
# thread, for 3.4 KiB.
# A caller's thread may have a stack of 16 KiB: FRAME_CFLAGS bound each frame.
floor_cflags = $(common_cflags) $(HARDENING_CFLAGS) $(FRAME_CFLAGS) -fvisibility=hidden -fasynchronous-unwind-tables

# ---------------------------------------------------------------------------
# base: no glib, no hiredis
# ---------------------------------------------------------------------------
noinst_LTLIBRARIES += libdmutex/libbase.la
libdmutex_libbase_la_CFLAGS = $(floor_cflags)
libdmutex_libbase_la_SOURCES = \
    libdmutex/base/attrs.h \
    libdmutex/base/block.c \
    libdmutex/base/block.h \
    libdmutex/base/bug.c \
    libdmutex/base/bug.h \
    libdmutex/base/bytes.c \
    libdmutex/base/bytes.h \
    libdmutex/base/clock.c \
    libdmutex/base/clock.h \
    libdmutex/base/date.c \
    libdmutex/base/date.h \
    libdmutex/base/descriptor.c \
    libdmutex/base/descriptor.h \
    libdmutex/base/error.c \
    libdmutex/base/error.def \
    libdmutex/base/error.h \
    libdmutex/base/file.c \
    libdmutex/base/file.h \
    libdmutex/base/fileid.h \
    libdmutex/base/ident.c \
    libdmutex/base/ident.h \
    libdmutex/base/image.c \
    libdmutex/base/image.h \
    libdmutex/base/log.c \
    libdmutex/base/log.h \
    libdmutex/base/minmax.h \
    libdmutex/base/order.c \
    libdmutex/base/order.h \
    libdmutex/base/output.c \
    libdmutex/base/output.h \
    libdmutex/base/module.c \
    libdmutex/base/module.h \
    libdmutex/base/own_signal.c \
    libdmutex/base/own_signal.h \
    libdmutex/base/place.c \
    libdmutex/base/place.h \
    libdmutex/base/poll.c \
    libdmutex/base/poll.h \
    libdmutex/base/probe.h \
    libdmutex/base/rank.c \
    libdmutex/base/rank.h \
    libdmutex/base/real.c \
    libdmutex/base/real.h \
    libdmutex/base/relay.c \
    libdmutex/base/relay.h \
    libdmutex/base/self.c \
    libdmutex/base/self.h \
    libdmutex/base/shield.c \
    libdmutex/base/shield.h \
    libdmutex/base/stderr.c \
    libdmutex/base/stderr.h \
    libdmutex/base/text.c \
    libdmutex/base/text.h \
    libdmutex/base/thread.c \
    libdmutex/base/thread.h \
    libdmutex/base/units.h

# ---------------------------------------------------------------------------
# config: what the user has written: URLs, logins, configuration files
# ---------------------------------------------------------------------------
noinst_LTLIBRARIES += libdmutex/libconfig.la
libdmutex_libconfig_la_CFLAGS = $(floor_cflags)
libdmutex_libconfig_la_SOURCES = \
    libdmutex/config/conffile.c \
    libdmutex/config/conffile.h \
    libdmutex/config/login.c \
    libdmutex/config/login.h \
    libdmutex/config/url.c \
    libdmutex/config/url.h \
    libdmutex/config/url_copy.c \
    libdmutex/config/url_options.c \
    libdmutex/config/url_parts.c \
    libdmutex/config/url_parts.h \
    libdmutex/config/url_postgres.c

# ---------------------------------------------------------------------------
# core: decisions only
# ---------------------------------------------------------------------------
noinst_LTLIBRARIES += libdmutex/libcore.la
libdmutex_libcore_la_CFLAGS = $(floor_cflags)
libdmutex_libcore_la_SOURCES = \
    libdmutex/core/answer.h \
    libdmutex/core/hold.c \
    libdmutex/core/hold.h \
    libdmutex/core/line.c \
    libdmutex/core/line.h \
    libdmutex/core/quorum.c \
    libdmutex/core/quorum.h \
    libdmutex/core/tenure.c \
    libdmutex/core/tenure.h

# ---------------------------------------------------------------------------
# store: the wall between the process and the lock stores
# ---------------------------------------------------------------------------
noinst_LTLIBRARIES += libdmutex/libstore.la
libdmutex_libstore_la_CFLAGS = $(floor_cflags)
libdmutex_libstore_la_SOURCES = \
    libdmutex/store/ask.c \
    libdmutex/store/ask.h \
    libdmutex/store/calls.h \
    libdmutex/store/drivers.h \
    libdmutex/store/store.h \
    libdmutex/store/verdict.c \
    libdmutex/store/verdict.h \
    libdmutex/store/watch.c \
    libdmutex/store/watch.h

# ---------------------------------------------------------------------------
# registers: the lock protocol on stores that can only compare and swap
# ---------------------------------------------------------------------------
noinst_LTLIBRARIES += libdmutex/libregisters.la
libdmutex_libregisters_la_CFLAGS = $(floor_cflags)
libdmutex_libregisters_la_SOURCES = \
    libdmutex/registers/apply.c \
    libdmutex/registers/apply.h \
    libdmutex/registers/client.c \
    libdmutex/registers/conditions.c \
    libdmutex/registers/driver.h \
    libdmutex/registers/engine.c \
    libdmutex/registers/errand.c \
    libdmutex/registers/errand.h \
    libdmutex/registers/keys.c \
    libdmutex/registers/keys.h \
    libdmutex/registers/look.c \
    libdmutex/registers/mark.c \
    libdmutex/registers/mark.h \
    libdmutex/registers/names.c \
    libdmutex/registers/news.c \
    libdmutex/registers/notes.c \
    libdmutex/registers/outbox.c \
    libdmutex/registers/questions.c \
    libdmutex/registers/requests.c \
    libdmutex/registers/rest.c \
    libdmutex/registers/session.c \
    libdmutex/registers/session.h \
    libdmutex/registers/sessions.c \
    libdmutex/registers/settle.c \
    libdmutex/registers/steps.c \
    libdmutex/registers/store.c \
    libdmutex/registers/store.h \
    libdmutex/registers/store_parts.h \
    libdmutex/registers/tasks.c \
    libdmutex/registers/sweep.c \
    libdmutex/registers/sweep.h \
    libdmutex/registers/trial.c \
    libdmutex/registers/trial.h \
    libdmutex/registers/turns.c \
    libdmutex/registers/value.c \
    libdmutex/registers/value.h \
    libdmutex/registers/version.c \
    libdmutex/registers/version.h \
    libdmutex/registers/view.c \
    libdmutex/registers/watch.c \
    libdmutex/registers/watch.h \
    libdmutex/registers/work.c \
    libdmutex/registers/work.h

# ---------------------------------------------------------------------------
# link: a connection that knows no locks; hiredis from here up to redis
# ---------------------------------------------------------------------------
noinst_LTLIBRARIES += libdmutex/liblink.la
libdmutex_liblink_la_CFLAGS = $(floor_cflags) $(HIREDIS_CFLAGS)
libdmutex_liblink_la_LIBADD = $(HIREDIS_LIBS)
# libtool notes in the file which hiredis configure has chosen
EXTRA_libdmutex_liblink_la_DEPENDENCIES = Makefile
libdmutex_liblink_la_SOURCES = \
    libdmutex/link/address.c \
    libdmutex/link/address.h \
    libdmutex/link/command.c \
    libdmutex/link/command.h \
    libdmutex/link/dial.c \
    libdmutex/link/dial.h \
    libdmutex/link/greeter.h \
    libdmutex/link/identify.c \
    libdmutex/link/identify.h \
    libdmutex/link/link.c \
    libdmutex/link/link.h \
    libdmutex/link/link_parts.h \
    libdmutex/link/pipe.c \
    libdmutex/link/pipe.h \
    libdmutex/link/prepare.c \
    libdmutex/link/prepare.h \
    libdmutex/link/race.c \
    libdmutex/link/race.h \
    libdmutex/link/reader.c \
    libdmutex/link/reader.h \
    libdmutex/link/retry.c \
    libdmutex/link/retry.h \
    libdmutex/link/session.c \
    libdmutex/link/session.h \
    libdmutex/link/session_close.c \
    libdmutex/link/session_greet.c \
    libdmutex/link/session_open.c \
    libdmutex/link/session_parts.h \
    libdmutex/link/stream.c \
    libdmutex/link/stream.h \
    libdmutex/link/tls.h \
    libdmutex/link/tls_calls.h \
    libdmutex/link/turns.c \
    libdmutex/link/turns.h

# ---------------------------------------------------------------------------
# TLS: all that calls OpenSSL.  The library loads it as a module; tests and programs of parts have it inside.
# ---------------------------------------------------------------------------
noinst_LTLIBRARIES += libdmutex/libtls.la
libdmutex_libtls_la_CFLAGS = $(floor_cflags) $(LIBSSL_CFLAGS)
if HAVE_TLS
libdmutex_libtls_la_LIBADD = libdmutex/libopenssl.la
libdmutex_libtls_la_SOURCES = libdmutex/link/tls_inside.c

noinst_LTLIBRARIES += libdmutex/libopenssl.la
libdmutex_libopenssl_la_CFLAGS = $(floor_cflags) $(LIBSSL_CFLAGS)
libdmutex_libopenssl_la_LIBADD = $(LIBSSL_LIBS)
libdmutex_libopenssl_la_SOURCES = \
    libdmutex/link/tls.c \
    libdmutex/link/tls_calls.c \
    libdmutex/link/tls_errors.c \
    libdmutex/link/tls_errors.h \
    libdmutex/link/tls_files.c \
    libdmutex/link/tls_files.h \
    libdmutex/link/tls_words.c \
    libdmutex/link/tls_words.h

pkglib_LTLIBRARIES += libdmutex/libdmutex-tls.la
libdmutex_libdmutex_tls_la_CFLAGS = $(floor_cflags)
libdmutex_libdmutex_tls_la_LIBADD = libdmutex/libopenssl.la
libdmutex_libdmutex_tls_la_SOURCES = \
    libdmutex/base/clock.c \
    libdmutex/base/file.c \
    libdmutex/base/place.c \
    libdmutex/base/poll.c \
    libdmutex/base/text.c \
    libdmutex/link/tls_module.c
libdmutex_libdmutex_tls_la_LDFLAGS = \
    -module \
    -avoid-version \
    -shared \
    -no-undefined \
    -Wl,-z,nodelete \
    $(HARDENING_LDFLAGS)

# Where the library looks for the module: in the folder libdmutex next to the library.
uninstalled_module = libdmutex/.libs/libdmutex/libdmutex-tls.so
noinst_DATA += $(uninstalled_module)
$(uninstalled_module): libdmutex/libdmutex-tls.la
	$(AM_V_GEN)$(MKDIR_P) $(@D) && ln -sf ../libdmutex-tls.so $@
else
libdmutex_libtls_la_SOURCES = libdmutex/link/tls_none.c
endif

# ---------------------------------------------------------------------------
# redis: the lock store on servers of Redis; wire < sentinel < node < cluster < the store
# ---------------------------------------------------------------------------
noinst_LTLIBRARIES += libdmutex/libredis.la
libdmutex_libredis_la_CFLAGS = $(floor_cflags) $(HIREDIS_CFLAGS)
libdmutex_libredis_la_LIBADD = $(HIREDIS_LIBS)
EXTRA_libdmutex_libredis_la_DEPENDENCIES = Makefile
libdmutex_libredis_la_SOURCES = \
    libdmutex/stores/redis/ask.c \
    libdmutex/stores/redis/attempt.c \
    libdmutex/stores/redis/cluster/cluster.c \
    libdmutex/stores/redis/cluster/cluster.h \
    libdmutex/stores/redis/cluster/groups.c \
    libdmutex/stores/redis/cluster/groups.h \
    libdmutex/stores/redis/cluster/map.c \
    libdmutex/stores/redis/cluster/nodes.c \
    libdmutex/stores/redis/cluster/parts.h \
    libdmutex/stores/redis/cluster/slot_map.c \
    libdmutex/stores/redis/cluster/slot_map.h \
    libdmutex/stores/redis/cluster/vouchers.c \
    libdmutex/stores/redis/cluster/vouchers.h \
    libdmutex/stores/redis/cond.c \
    libdmutex/stores/redis/driver.c \
    libdmutex/stores/redis/message.c \
    libdmutex/stores/redis/name.c \
    libdmutex/stores/redis/node/greeting.c \
    libdmutex/stores/redis/node/greeting.h \
    libdmutex/stores/redis/node/node.c \
    libdmutex/stores/redis/node/node.h \
    libdmutex/stores/redis/parts.h \
    libdmutex/stores/redis/post.c \
    libdmutex/stores/redis/route.c \
    libdmutex/stores/redis/route.h \
    libdmutex/stores/redis/script.c \
    libdmutex/stores/redis/sentinel/council.c \
    libdmutex/stores/redis/sentinel/council.h \
    libdmutex/stores/redis/sentinel/master_watch.c \
    libdmutex/stores/redis/sentinel/master_watch.h \
    libdmutex/stores/redis/sentinel/sentinel.c \
    libdmutex/stores/redis/sentinel/sentinel.h \
    libdmutex/stores/redis/view.c \
    libdmutex/stores/redis/wire/keys.c \
    libdmutex/stores/redis/wire/keys.h \
    libdmutex/stores/redis/wire/reply.c \
    libdmutex/stores/redis/wire/reply.h \
    libdmutex/stores/redis/wire/scripts.h \
    libdmutex/stores/redis/wire/slots.c \
    libdmutex/stores/redis/wire/slots.h \
    libdmutex/stores/redis/wire/tls_of.c \
    libdmutex/stores/redis/wire/tls_of.h
nodist_libdmutex_libredis_la_SOURCES = libdmutex/stores/redis/wire/scripts.c

# Each script becomes the string dm_lua_NAME. Files that begin with _ are only included by others.
lua_scripts = \
    libdmutex/stores/redis/lua/acquire.lua \
    libdmutex/stores/redis/lua/born.lua \
    libdmutex/stores/redis/lua/cancel.lua \
    libdmutex/stores/redis/lua/cond_cancel.lua \
    libdmutex/stores/redis/lua/cond_drop.lua \
    libdmutex/stores/redis/lua/cond_signal.lua \
    libdmutex/stores/redis/lua/cond_wait.lua \
    libdmutex/stores/redis/lua/consistent.lua \
    libdmutex/stores/redis/lua/drop.lua \
    libdmutex/stores/redis/lua/force.lua \
    libdmutex/stores/redis/lua/info.lua \
    libdmutex/stores/redis/lua/poll.lua \
    libdmutex/stores/redis/lua/probe.lua \
    libdmutex/stores/redis/lua/release.lua \
    libdmutex/stores/redis/lua/renew.lua \
    libdmutex/stores/redis/lua/view.lua
lua_includes = \
    libdmutex/stores/redis/lua/_base.lua \
    libdmutex/stores/redis/lua/_clock.lua \
    libdmutex/stores/redis/lua/_condition.lua \
    libdmutex/stores/redis/lua/_ended.lua \
    libdmutex/stores/redis/lua/_grant.lua \
    libdmutex/stores/redis/lua/_guard.lua \
    libdmutex/stores/redis/lua/_handover.lua \
    libdmutex/stores/redis/lua/_insert.lua \
    libdmutex/stores/redis/lua/_keep.lua \
    libdmutex/stores/redis/lua/_newest.lua \
    libdmutex/stores/redis/lua/_numbers.lua \
    libdmutex/stores/redis/lua/_offer.lua \
    libdmutex/stores/redis/lua/_origin.lua \
    libdmutex/stores/redis/lua/_owe.lua \
    libdmutex/stores/redis/lua/_publish.lua \
    libdmutex/stores/redis/lua/_queue.lua \
    libdmutex/stores/redis/lua/_serve.lua \
    libdmutex/stores/redis/lua/_silent.lua \
    libdmutex/stores/redis/lua/_state.lua \
    libdmutex/stores/redis/lua/_tell.lua \
    libdmutex/stores/redis/lua/_wanted.lua

EXTRA_DIST += $(lua_scripts) $(lua_includes)
CLEANFILES += libdmutex/stores/redis/wire/scripts.c
libdmutex/stores/redis/wire/scripts.c: $(lua_scripts) $(lua_includes) build-aux/embed-lua.awk
	$(AM_V_GEN)$(MKDIR_P) $(@D)
	$(AM_V_at)(cd $(srcdir) && $(AWK) -f build-aux/embed-lua.awk $(lua_scripts)) >$@.tmp
	$(AM_V_at)mv $@.tmp $@

# ---------------------------------------------------------------------------
# redis/registers: the register store on the same servers.  No URL opens it yet: only tests link it.
# ---------------------------------------------------------------------------
noinst_LTLIBRARIES += libdmutex/libredis-registers.la
libdmutex_libredis_registers_la_CFLAGS = $(floor_cflags) $(HIREDIS_CFLAGS)
libdmutex_libredis_registers_la_SOURCES = \
    libdmutex/stores/redis/registers/arrivals.c \
    libdmutex/stores/redis/registers/driver.c \
    libdmutex/stores/redis/registers/list.c \
    libdmutex/stores/redis/registers/open.h \
    libdmutex/stores/redis/registers/parts.h \
    libdmutex/stores/redis/registers/requests.c \
    libdmutex/stores/redis/registers/scripts.h
nodist_libdmutex_libredis_registers_la_SOURCES = libdmutex/stores/redis/registers/scripts.c

register_scripts = \
    libdmutex/stores/redis/lua/register_epoch.lua \
    libdmutex/stores/redis/lua/register_read.lua \
    libdmutex/stores/redis/lua/register_swap.lua \
    libdmutex/stores/redis/lua/register_swap_full.lua
register_includes = \
    libdmutex/stores/redis/lua/_guard.lua \
    libdmutex/stores/redis/lua/_register.lua \
    libdmutex/stores/redis/lua/_register_swap.lua

EXTRA_DIST += $(register_scripts) $(register_includes)
CLEANFILES += libdmutex/stores/redis/registers/scripts.c
libdmutex/stores/redis/registers/scripts.c: $(register_scripts) $(register_includes) build-aux/embed-lua.awk
	$(AM_V_GEN)$(MKDIR_P) $(@D)
	$(AM_V_at)(cd $(srcdir) && $(AWK) -f build-aux/embed-lua.awk $(register_scripts)) >$@.tmp
	$(AM_V_at)mv $@.tmp $@

# ---------------------------------------------------------------------------
# etcd: the register store on etcd, which needs no library
# ---------------------------------------------------------------------------
noinst_LTLIBRARIES += libdmutex/libetcd.la
libdmutex_libetcd_la_CFLAGS = $(floor_cflags)
libdmutex_libetcd_la_SOURCES = \
    libdmutex/stores/etcd/ask.c \
    libdmutex/stores/etcd/driver.c \
    libdmutex/stores/etcd/http.c \
    libdmutex/stores/etcd/http.h \
    libdmutex/stores/etcd/items.c \
    libdmutex/stores/etcd/json.c \
    libdmutex/stores/etcd/json.h \
    libdmutex/stores/etcd/open.h \
    libdmutex/stores/etcd/parts.h \
    libdmutex/stores/etcd/store.c

# ---------------------------------------------------------------------------
# memcached: the register store on memcached, which needs no library
# ---------------------------------------------------------------------------
noinst_LTLIBRARIES += libdmutex/libmemcached.la
libdmutex_libmemcached_la_CFLAGS = $(floor_cflags)
libdmutex_libmemcached_la_SOURCES = \
    libdmutex/stores/memcached/answer.c \
    libdmutex/stores/memcached/answer.h \
    libdmutex/stores/memcached/driver.c \
    libdmutex/stores/memcached/open.h \
    libdmutex/stores/memcached/store.c

# ---------------------------------------------------------------------------
# zookeeper: the register store on ZooKeeper, which needs no library
# ---------------------------------------------------------------------------
noinst_LTLIBRARIES += libdmutex/libzookeeper.la
libdmutex_libzookeeper_la_CFLAGS = $(floor_cflags)
libdmutex_libzookeeper_la_SOURCES = \
    libdmutex/stores/zookeeper/driver.c \
    libdmutex/stores/zookeeper/greet.c \
    libdmutex/stores/zookeeper/items.c \
    libdmutex/stores/zookeeper/jute.c \
    libdmutex/stores/zookeeper/jute.h \
    libdmutex/stores/zookeeper/open.h \
    libdmutex/stores/zookeeper/parts.h \
    libdmutex/stores/zookeeper/requests.c \
    libdmutex/stores/zookeeper/store.c \
    libdmutex/stores/zookeeper/wire.c \
    libdmutex/stores/zookeeper/wire.h

# ---------------------------------------------------------------------------
# postgres: the register store on PostgreSQL.  What calls libpq is a module, which the library loads at first use.
# ---------------------------------------------------------------------------
noinst_LTLIBRARIES += libdmutex/libpostgres-schema.la libdmutex/libpostgres.la
libdmutex_libpostgres_schema_la_CFLAGS = $(floor_cflags)
libdmutex_libpostgres_schema_la_SOURCES = libdmutex/stores/postgres/schema.c libdmutex/stores/postgres/schema.h
libdmutex_libpostgres_la_CPPFLAGS = $(AM_CPPFLAGS) -DPKGLIBDIR='"$(pkglibdir)"'
libdmutex_libpostgres_la_CFLAGS = $(floor_cflags)
libdmutex_libpostgres_la_SOURCES = \
    libdmutex/stores/postgres/folder.c \
    libdmutex/stores/postgres/load.c \
    libdmutex/stores/postgres/open.h
if HAVE_POSTGRES
noinst_LTLIBRARIES += libdmutex/libpostgres-driver.la
libdmutex_libpostgres_driver_la_CFLAGS = $(floor_cflags) $(LIBPQ_CFLAGS)
libdmutex_libpostgres_driver_la_LIBADD = libdmutex/libpostgres-schema.la $(LIBPQ_LIBS)
libdmutex_libpostgres_driver_la_SOURCES = \
    libdmutex/stores/postgres/connect.c \
    libdmutex/stores/postgres/driver.c \
    libdmutex/stores/postgres/examine.c \
    libdmutex/stores/postgres/exchange.c \
    libdmutex/stores/postgres/greeting.c \
    libdmutex/stores/postgres/parts.h \
    libdmutex/stores/postgres/requests.c \
    libdmutex/stores/postgres/sentence.c \
    libdmutex/stores/postgres/settings.c \
    libdmutex/stores/postgres/swap.c

# The module has copies of the files of other rooms that have no data of their own.
pkglib_LTLIBRARIES += libdmutex/store-postgres.la
libdmutex_store_postgres_la_CFLAGS = $(floor_cflags)
libdmutex_store_postgres_la_LIBADD = libdmutex/libpostgres-driver.la
libdmutex_store_postgres_la_SOURCES = \
    libdmutex/base/clock.c \
    libdmutex/base/descriptor.c \
    libdmutex/base/poll.c \
    libdmutex/base/text.c \
    libdmutex/link/retry.c \
    libdmutex/registers/trial.c \
    libdmutex/registers/version.c \
    libdmutex/store/watch.c \
    libdmutex/stores/postgres/module.c
libdmutex_store_postgres_la_LDFLAGS = \
    -module \
    -avoid-version \
    -shared \
    -no-undefined \
    -Wl,-z,nodelete \
    $(HARDENING_LDFLAGS)

uninstalled_postgres = libdmutex/.libs/libdmutex/store-postgres.so
noinst_DATA += $(uninstalled_postgres)
$(uninstalled_postgres): libdmutex/store-postgres.la
	$(AM_V_GEN)$(MKDIR_P) $(@D) && ln -sf ../store-postgres.so $@
endif

# ---------------------------------------------------------------------------
# mariadb: the register store on MariaDB and MySQL.  What calls libmariadb is a module, as for PostgreSQL.
# ---------------------------------------------------------------------------
noinst_LTLIBRARIES += libdmutex/libmaria-schema.la libdmutex/libmaria.la
libdmutex_libmaria_schema_la_CFLAGS = $(floor_cflags)
libdmutex_libmaria_schema_la_SOURCES = libdmutex/stores/mariadb/schema.c libdmutex/stores/mariadb/schema.h
libdmutex_libmaria_la_CPPFLAGS = $(AM_CPPFLAGS) -DPKGLIBDIR='"$(pkglibdir)"'
libdmutex_libmaria_la_CFLAGS = $(floor_cflags)
libdmutex_libmaria_la_SOURCES = \
    libdmutex/stores/mariadb/folder.c \
    libdmutex/stores/mariadb/load.c \
    libdmutex/stores/mariadb/open.h
if HAVE_MARIADB
noinst_LTLIBRARIES += libdmutex/libmaria-driver.la
libdmutex_libmaria_driver_la_CFLAGS = $(floor_cflags) $(LIBMARIADB_CFLAGS)
libdmutex_libmaria_driver_la_LIBADD = libdmutex/libmaria-schema.la $(LIBMARIADB_LIBS)
libdmutex_libmaria_driver_la_SOURCES = \
    libdmutex/stores/mariadb/connect.c \
    libdmutex/stores/mariadb/driver.c \
    libdmutex/stores/mariadb/examine.c \
    libdmutex/stores/mariadb/greeting.c \
    libdmutex/stores/mariadb/items.c \
    libdmutex/stores/mariadb/parts.h \
    libdmutex/stores/mariadb/sentence.c \
    libdmutex/stores/mariadb/swap.c \
    libdmutex/stores/mariadb/talk.c

pkglib_LTLIBRARIES += libdmutex/store-mariadb.la
libdmutex_store_mariadb_la_CFLAGS = $(floor_cflags)
libdmutex_store_mariadb_la_LIBADD = libdmutex/libmaria-driver.la
libdmutex_store_mariadb_la_SOURCES = \
    libdmutex/base/bytes.c \
    libdmutex/base/clock.c \
    libdmutex/base/descriptor.c \
    libdmutex/base/poll.c \
    libdmutex/base/shield.c \
    libdmutex/base/text.c \
    libdmutex/link/retry.c \
    libdmutex/registers/trial.c \
    libdmutex/registers/version.c \
    libdmutex/store/watch.c \
    libdmutex/stores/mariadb/module.c
libdmutex_store_mariadb_la_LDFLAGS = \
    -module \
    -avoid-version \
    -shared \
    -no-undefined \
    -Wl,-z,nodelete \
    $(HARDENING_LDFLAGS)

uninstalled_mariadb = libdmutex/.libs/libdmutex/store-mariadb.so
noinst_DATA += $(uninstalled_mariadb)
$(uninstalled_mariadb): libdmutex/store-mariadb.la
	$(AM_V_GEN)$(MKDIR_P) $(@D) && ln -sf ../store-mariadb.so $@
endif

# ---------------------------------------------------------------------------
# quorum: the lock store on several other stores
# ---------------------------------------------------------------------------
noinst_LTLIBRARIES += libdmutex/libquorum.la
libdmutex_libquorum_la_CFLAGS = $(floor_cflags)
libdmutex_libquorum_la_SOURCES = \
    libdmutex/stores/quorum/ask.c \
    libdmutex/stores/quorum/batch.c \
    libdmutex/stores/quorum/name.c \
    libdmutex/stores/quorum/parts.h \
    libdmutex/stores/quorum/quorum.c \
    libdmutex/stores/quorum/record.c \
    libdmutex/stores/quorum/view.c \
    libdmutex/stores/quorum/ways.c

# ---------------------------------------------------------------------------
# stores: the table of all
# ---------------------------------------------------------------------------
noinst_LTLIBRARIES += libdmutex/libstores.la
libdmutex_libstores_la_CFLAGS = $(floor_cflags)
libdmutex_libstores_la_SOURCES = libdmutex/stores/stores.c

# ---------------------------------------------------------------------------
# spawn: private servers
# ---------------------------------------------------------------------------
noinst_LTLIBRARIES += libdmutex/libspawn.la
libdmutex_libspawn_la_CFLAGS = $(floor_cflags)
libdmutex_libspawn_la_SOURCES = \
    libdmutex/spawn/local.c \
    libdmutex/spawn/local.h \
    libdmutex/spawn/outside.c \
    libdmutex/spawn/outside.h \
    libdmutex/spawn/pgserver.c \
    libdmutex/spawn/pgserver.h \
    libdmutex/spawn/reaper.c \
    libdmutex/spawn/reaper.h \
    libdmutex/spawn/server.c \
    libdmutex/spawn/server.h

# ---------------------------------------------------------------------------
# process: claims < calls < keep < life; glib in loop.c and registry.c
# ---------------------------------------------------------------------------
noinst_LTLIBRARIES += libdmutex/libprocess.la
libdmutex_libprocess_la_CFLAGS = $(floor_cflags) $(GLIB_CFLAGS)
libdmutex_libprocess_la_LIBADD = $(GLIB_LIBS)
libdmutex_libprocess_la_SOURCES = \
    libdmutex/process/calls/acquire.c \
    libdmutex/process/calls/acquire.h \
    libdmutex/process/calls/call.c \
    libdmutex/process/calls/call.h \
    libdmutex/process/calls/condition.c \
    libdmutex/process/calls/condition.h \
    libdmutex/process/calls/explain.c \
    libdmutex/process/calls/explain.h \
    libdmutex/process/calls/join.c \
    libdmutex/process/calls/release.c \
    libdmutex/process/calls/release.h \
    libdmutex/process/calls/wait.c \
    libdmutex/process/calls/wait.h \
    libdmutex/process/claims/alarm.c \
    libdmutex/process/claims/alarm.h \
    libdmutex/process/claims/claim.c \
    libdmutex/process/claims/claim.h \
    libdmutex/process/claims/due.c \
    libdmutex/process/claims/due.h \
    libdmutex/process/claims/ending.c \
    libdmutex/process/claims/ending.h \
    libdmutex/process/claims/fast.c \
    libdmutex/process/claims/fast.h \
    libdmutex/process/claims/metrics_due.c \
    libdmutex/process/claims/metrics_due.h \
    libdmutex/process/claims/process.c \
    libdmutex/process/claims/process.h \
    libdmutex/process/claims/registry.c \
    libdmutex/process/claims/registry.h \
    libdmutex/process/claims/stats.c \
    libdmutex/process/claims/stats.h \
    libdmutex/process/claims/steps.c \
    libdmutex/process/claims/steps.h \
    libdmutex/process/claims/target.h \
    libdmutex/process/keep/gate.c \
    libdmutex/process/keep/gate.h \
    libdmutex/process/keep/inbox.c \
    libdmutex/process/keep/inbox.h \
    libdmutex/process/keep/loop.c \
    libdmutex/process/keep/loop.h \
    libdmutex/process/keep/loss.c \
    libdmutex/process/keep/loss.h \
    libdmutex/process/keep/metrics.c \
    libdmutex/process/keep/metrics.h \
    libdmutex/process/keep/pump.c \
    libdmutex/process/keep/pump.h \
    libdmutex/process/keep/returns.c \
    libdmutex/process/keep/returns.h \
    libdmutex/process/life/exit.c \
    libdmutex/process/life/exit.h \
    libdmutex/process/life/fork.c \
    libdmutex/process/life/fork.h \
    libdmutex/process/life/lifetime.c \
    libdmutex/process/life/lifetime.h \
    libdmutex/process/life/runtime.c \
    libdmutex/process/life/runtime.h \
    libdmutex/process/life/testserver.c \
    libdmutex/process/life/testserver.h \
    libdmutex/process/settings.c \
    libdmutex/process/settings.h

# ---------------------------------------------------------------------------
# names: of mutexes that a program names without saying so
# ---------------------------------------------------------------------------
noinst_LTLIBRARIES += libdmutex/libnames.la
libdmutex_libnames_la_CFLAGS = $(floor_cflags)
libdmutex_libnames_la_SOURCES = \
    libdmutex/names/automatic.c \
    libdmutex/names/automatic.h \
    libdmutex/names/literal.c \
    libdmutex/names/literal.h

# ---------------------------------------------------------------------------
# api: the only exporters
# ---------------------------------------------------------------------------
noinst_LTLIBRARIES += libdmutex/libapi.la
libdmutex_libapi_la_CFLAGS = $(floor_cflags)
libdmutex_libapi_la_SOURCES = \
    libdmutex/api/attr.c \
    libdmutex/api/binding.c \
    libdmutex/api/binding.h \
    libdmutex/api/cond.c \
    libdmutex/api/condattr.c \
    libdmutex/api/hold.c \
    libdmutex/api/init.c \
    libdmutex/api/lib.c \
    libdmutex/api/local.c \
    libdmutex/api/local.h \
    libdmutex/api/mutex.c \
    libdmutex/api/object.c \
    libdmutex/api/object.h \
    libdmutex/api/stats.c \
    libdmutex/api/testing.c \
    libdmutex/api/view.c \
    libdmutex/api/view.h

# ---------------------------------------------------------------------------
# The floors up to a given one, for a test that is linked to no higher one
# ---------------------------------------------------------------------------
up_to_base = libdmutex/libbase.la
up_to_config = libdmutex/libconfig.la $(up_to_base)
up_to_core = libdmutex/libcore.la $(up_to_config)
up_to_store = libdmutex/libstore.la $(up_to_core)
up_to_registers = libdmutex/libregisters.la $(up_to_store)
up_to_link = libdmutex/liblink.la libdmutex/libtls.la $(up_to_store)
up_to_redis = libdmutex/libredis.la $(up_to_link)
up_to_stores = libdmutex/libstores.la libdmutex/libquorum.la libdmutex/libzookeeper.la libdmutex/libetcd.la libdmutex/libmemcached.la libdmutex/libmaria.la libdmutex/libpostgres.la libdmutex/libregisters.la $(up_to_redis)
up_to_spawn = libdmutex/libspawn.la $(up_to_stores)
up_to_process = libdmutex/libprocess.la $(up_to_spawn)
up_to_names = libdmutex/libnames.la $(up_to_process)
up_to_api = libdmutex/libapi.la $(up_to_names)

# ---------------------------------------------------------------------------
# The library. nodelete: its threads must not lose their code when it is dlclose()d.
# ---------------------------------------------------------------------------
lib_LTLIBRARIES += libdmutex/libdmutex.la
libdmutex_libdmutex_la_CPPFLAGS = $(AM_CPPFLAGS) -DPKGLIBDIR='"$(pkglibdir)"'
libdmutex_libdmutex_la_CFLAGS = $(floor_cflags)
libdmutex_libdmutex_la_LIBADD = \
    libdmutex/libapi.la libdmutex/libnames.la libdmutex/libprocess.la libdmutex/libspawn.la libdmutex/libstores.la \
    libdmutex/libquorum.la libdmutex/libzookeeper.la libdmutex/libetcd.la libdmutex/libmemcached.la libdmutex/libmaria.la libdmutex/libpostgres.la libdmutex/libregisters.la libdmutex/libredis.la \
    libdmutex/liblink.la $(up_to_store)
libdmutex_libdmutex_la_SOURCES =
if HAVE_TLS
libdmutex_libdmutex_la_SOURCES += \
    libdmutex/link/tls_bound.c \
    libdmutex/link/tls_bound.h \
    libdmutex/link/tls_load.c
else
libdmutex_libdmutex_la_LIBADD += libdmutex/libtls.la
endif
libdmutex_libdmutex_la_LDFLAGS = \
    -version-info $(ABI_VERSION) \
    -no-undefined \
    -Wl,-z,nodelete \
    $(HARDENING_LDFLAGS) \
    -Wl,--version-script=$(srcdir)/libdmutex/libdmutex.map
EXTRA_libdmutex_libdmutex_la_DEPENDENCIES = libdmutex/libdmutex.map
EXTRA_DIST += libdmutex/libdmutex.map
