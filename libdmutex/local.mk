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
    libdmutex/base/clock.c \
    libdmutex/base/clock.h \
    libdmutex/base/conffile.c \
    libdmutex/base/conffile.h \
    libdmutex/base/date.c \
    libdmutex/base/date.h \
    libdmutex/base/descriptor.c \
    libdmutex/base/descriptor.h \
    libdmutex/base/error.c \
    libdmutex/base/error.def \
    libdmutex/base/error.h \
    libdmutex/base/file.c \
    libdmutex/base/file.h \
    libdmutex/base/ident.c \
    libdmutex/base/fileid.h \
    libdmutex/base/ident.h \
    libdmutex/base/image.c \
    libdmutex/base/image.h \
    libdmutex/base/literal.c \
    libdmutex/base/literal.h \
    libdmutex/base/log.c \
    libdmutex/base/log.h \
    libdmutex/base/minmax.h \
    libdmutex/base/order.c \
    libdmutex/base/output.c \
    libdmutex/base/output.h \
    libdmutex/base/order.h \
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
# core: decisions only
# ---------------------------------------------------------------------------
noinst_LTLIBRARIES += libdmutex/libcore.la
libdmutex_libcore_la_CFLAGS = $(floor_cflags)
libdmutex_libcore_la_SOURCES = \
    libdmutex/core/answer.h \
    libdmutex/core/hold.c \
    libdmutex/core/hold.h \
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
    libdmutex/store/calls.h \
    libdmutex/store/drivers.h \
    libdmutex/store/login.c \
    libdmutex/store/login.h \
    libdmutex/store/quorum.c \
    libdmutex/store/quorum_ask.c \
    libdmutex/store/quorum_batch.c \
    libdmutex/store/quorum_name.c \
    libdmutex/store/quorum_parts.h \
    libdmutex/store/quorum_record.c \
    libdmutex/store/quorum_view.c \
    libdmutex/store/store.h \
    libdmutex/store/url.c \
    libdmutex/store/url.h \
    libdmutex/store/url_copy.c \
    libdmutex/store/url_options.c \
    libdmutex/store/url_parts.c \
    libdmutex/store/url_parts.h \
    libdmutex/store/verdict.c \
    libdmutex/store/verdict.h \
    libdmutex/store/watch.c \
    libdmutex/store/watch.h

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
    libdmutex/link/greeter.h \
    libdmutex/link/link.c \
    libdmutex/link/link.h \
    libdmutex/link/link_parts.h \
    libdmutex/link/look.c \
    libdmutex/link/look.h \
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
    libdmutex/link/tls_module.c
libdmutex_libdmutex_tls_la_LDFLAGS = \
    -module \
    -avoid-version \
    -shared \
    -no-undefined \
    -Wl,-z,nodelete \
    $(HARDENING_LDFLAGS)

# Where the library looks for the module: in the folder libdmutex beside itself.
uninstalled_module = libdmutex/.libs/libdmutex/libdmutex-tls.so
noinst_DATA = $(uninstalled_module)
$(uninstalled_module): libdmutex/libdmutex-tls.la
	$(AM_V_GEN)$(MKDIR_P) $(@D) && ln -sf ../libdmutex-tls.so $@
else
libdmutex_libtls_la_SOURCES = libdmutex/link/tls_none.c
endif

# ---------------------------------------------------------------------------
# redis: the lock store on links
# ---------------------------------------------------------------------------
noinst_LTLIBRARIES += libdmutex/libredis.la
libdmutex_libredis_la_CFLAGS = $(floor_cflags) $(HIREDIS_CFLAGS)
libdmutex_libredis_la_LIBADD = $(HIREDIS_LIBS)
EXTRA_libdmutex_libredis_la_DEPENDENCIES = Makefile
libdmutex_libredis_la_SOURCES = \
    libdmutex/redis/node.c \
    libdmutex/redis/node.h \
    libdmutex/redis/council.c \
    libdmutex/redis/council.h \
    libdmutex/redis/driver.c \
    libdmutex/redis/fleet.c \
    libdmutex/redis/fleet.h \
    libdmutex/redis/fleet_map.c \
    libdmutex/redis/fleet_parts.h \
    libdmutex/redis/greeting.c \
    libdmutex/redis/greeting.h \
    libdmutex/redis/groups.c \
    libdmutex/redis/groups.h \
    libdmutex/redis/guide.c \
    libdmutex/redis/guide.h \
    libdmutex/redis/keys.c \
    libdmutex/redis/keys.h \
    libdmutex/redis/lookout.c \
    libdmutex/redis/lookout.h \
    libdmutex/redis/reply.c \
    libdmutex/redis/reply.h \
    libdmutex/redis/sentinel.c \
    libdmutex/redis/sentinel.h \
    libdmutex/redis/scripts.h \
    libdmutex/redis/slots.c \
    libdmutex/redis/slots.h \
    libdmutex/redis/store.c \
    libdmutex/redis/store_batch.c \
    libdmutex/redis/store_acquire.c \
    libdmutex/redis/store_cond.c \
    libdmutex/redis/store_message.c \
    libdmutex/redis/store_name.c \
    libdmutex/redis/store_parts.h \
    libdmutex/redis/store_post.c \
    libdmutex/redis/store_view.c \
    libdmutex/redis/vouchers.c \
    libdmutex/redis/vouchers.h
nodist_libdmutex_libredis_la_SOURCES = libdmutex/redis/scripts.c

# Each script becomes the string dm_lua_NAME. Files that begin with _ are only included by others.
lua_scripts = \
    libdmutex/redis/lua/acquire.lua \
    libdmutex/redis/lua/born.lua \
    libdmutex/redis/lua/cancel.lua \
    libdmutex/redis/lua/cond_cancel.lua \
    libdmutex/redis/lua/cond_drop.lua \
    libdmutex/redis/lua/cond_signal.lua \
    libdmutex/redis/lua/cond_wait.lua \
    libdmutex/redis/lua/consistent.lua \
    libdmutex/redis/lua/drop.lua \
    libdmutex/redis/lua/force.lua \
    libdmutex/redis/lua/info.lua \
    libdmutex/redis/lua/poll.lua \
    libdmutex/redis/lua/probe.lua \
    libdmutex/redis/lua/release.lua \
    libdmutex/redis/lua/renew.lua \
    libdmutex/redis/lua/view.lua
lua_includes = \
    libdmutex/redis/lua/_base.lua \
    libdmutex/redis/lua/_clock.lua \
    libdmutex/redis/lua/_condition.lua \
    libdmutex/redis/lua/_ended.lua \
    libdmutex/redis/lua/_grant.lua \
    libdmutex/redis/lua/_guard.lua \
    libdmutex/redis/lua/_handover.lua \
    libdmutex/redis/lua/_insert.lua \
    libdmutex/redis/lua/_keep.lua \
    libdmutex/redis/lua/_newest.lua \
    libdmutex/redis/lua/_numbers.lua \
    libdmutex/redis/lua/_offer.lua \
    libdmutex/redis/lua/_origin.lua \
    libdmutex/redis/lua/_owe.lua \
    libdmutex/redis/lua/_publish.lua \
    libdmutex/redis/lua/_queue.lua \
    libdmutex/redis/lua/_serve.lua \
    libdmutex/redis/lua/_silent.lua \
    libdmutex/redis/lua/_state.lua \
    libdmutex/redis/lua/_tell.lua \
    libdmutex/redis/lua/_wanted.lua

EXTRA_DIST += $(lua_scripts) $(lua_includes)
CLEANFILES += libdmutex/redis/scripts.c
libdmutex/redis/scripts.c: $(lua_scripts) $(lua_includes) build-aux/embed-lua.awk
	$(AM_V_GEN)$(MKDIR_P) $(@D)
	$(AM_V_at)(cd $(srcdir) && $(AWK) -f build-aux/embed-lua.awk $(lua_scripts)) >$@.tmp
	$(AM_V_at)mv $@.tmp $@

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
    libdmutex/spawn/reaper.c \
    libdmutex/spawn/reaper.h \
    libdmutex/spawn/server.c \
    libdmutex/spawn/server.h

# ---------------------------------------------------------------------------
# runtime: threads, sockets, timers; glib in loop.c and registry.c
# ---------------------------------------------------------------------------
noinst_LTLIBRARIES += libdmutex/libruntime.la
libdmutex_libruntime_la_CFLAGS = $(floor_cflags) $(GLIB_CFLAGS)
libdmutex_libruntime_la_LIBADD = $(GLIB_LIBS)
libdmutex_libruntime_la_SOURCES = \
    libdmutex/runtime/acquire.c \
    libdmutex/runtime/acquire.h \
    libdmutex/runtime/call.c \
    libdmutex/runtime/call.h \
    libdmutex/runtime/condition.c \
    libdmutex/runtime/condition.h \
    libdmutex/runtime/explain.c \
    libdmutex/runtime/explain.h \
    libdmutex/runtime/inbox.c \
    libdmutex/runtime/inbox.h \
    libdmutex/runtime/join.c \
    libdmutex/runtime/due.c \
    libdmutex/runtime/due.h \
    libdmutex/runtime/ending.c \
    libdmutex/runtime/ending.h \
    libdmutex/runtime/leave.c \
    libdmutex/runtime/leave.h \
    libdmutex/runtime/lifetime.c \
    libdmutex/runtime/lifetime.h \
    libdmutex/runtime/line.c \
    libdmutex/runtime/line.h \
    libdmutex/runtime/line_parts.h \
    libdmutex/runtime/loop.c \
    libdmutex/runtime/loop.h \
    libdmutex/runtime/loss.c \
    libdmutex/runtime/loss.h \
    libdmutex/runtime/metrics.c \
    libdmutex/runtime/metrics.h \
    libdmutex/runtime/pump.c \
    libdmutex/runtime/pump.h \
    libdmutex/runtime/registry.c \
    libdmutex/runtime/registry.h \
    libdmutex/runtime/release.c \
    libdmutex/runtime/release.h \
    libdmutex/runtime/runtime.c \
    libdmutex/runtime/runtime.h \
    libdmutex/runtime/settings.c \
    libdmutex/runtime/settings.h \
    libdmutex/runtime/stats.c \
    libdmutex/runtime/stats.h \
    libdmutex/runtime/steps.c \
    libdmutex/runtime/steps.h \
    libdmutex/runtime/fast.c \
    libdmutex/runtime/fast.h \
    libdmutex/runtime/testserver.c \
    libdmutex/runtime/testserver.h \
    libdmutex/runtime/wait.h

# ---------------------------------------------------------------------------
# api: the only exporters
# ---------------------------------------------------------------------------
noinst_LTLIBRARIES += libdmutex/libapi.la
libdmutex_libapi_la_CFLAGS = $(floor_cflags)
libdmutex_libapi_la_SOURCES = \
    libdmutex/api/attr.c \
    libdmutex/api/automatic.c \
    libdmutex/api/automatic.h \
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
up_to_core = libdmutex/libcore.la $(up_to_base)
up_to_store = libdmutex/libstore.la $(up_to_core)
up_to_link = libdmutex/liblink.la libdmutex/libtls.la $(up_to_store)
up_to_redis = libdmutex/libredis.la $(up_to_link)
up_to_spawn = libdmutex/libspawn.la $(up_to_redis)
up_to_runtime = libdmutex/libruntime.la $(up_to_spawn)
up_to_api = libdmutex/libapi.la $(up_to_runtime)

# ---------------------------------------------------------------------------
# The library. nodelete: its threads must not lose their code when it is dlclose()d.
# ---------------------------------------------------------------------------
lib_LTLIBRARIES += libdmutex/libdmutex.la
libdmutex_libdmutex_la_CPPFLAGS = $(AM_CPPFLAGS) -DPKGLIBDIR='"$(pkglibdir)"'
libdmutex_libdmutex_la_CFLAGS = $(floor_cflags)
libdmutex_libdmutex_la_LIBADD = \
    libdmutex/libapi.la libdmutex/libruntime.la libdmutex/libspawn.la libdmutex/libredis.la libdmutex/liblink.la \
    $(up_to_store)
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
