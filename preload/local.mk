# The preload layer: a module, the program that runs others with it, and the keeper of lock files.
# doc/design/preload.md says how the three work together.

# Unwind tables, because threads are cancelled in waits; not -fexceptions, which would need libgcc_s.
# No sanitizers either: the programs with the preloaded module have none.
preload_cflags = -std=gnu11 -pthread $(WARNING_CFLAGS) $(HARDENING_CFLAGS) -fvisibility=hidden -fasynchronous-unwind-tables

# ---------------------------------------------------------------------------
# The module: linked to libc only.  An anonymous version script, so that its names satisfy references
# to any version of libc's; dlsym(RTLD_NEXT) must not be a jump.
# ---------------------------------------------------------------------------
pkglib_LTLIBRARIES += preload/libdmutex-preload.la
preload_libdmutex_preload_la_CPPFLAGS = $(AM_CPPFLAGS) -DPKGLIBEXECDIR='"$(pkglibexecdir)"'
preload_libdmutex_preload_la_CFLAGS = $(preload_cflags) $(FRAME_CFLAGS)
preload_libdmutex_preload_la_SOURCES = \
    libdmutex/base/own_signal.c \
    libdmutex/base/own_signal.h \
    preload/module/base/gate.c \
    preload/module/base/gate.h \
    preload/module/base/memory.c \
    preload/module/base/memory.h \
    preload/module/base/now.h \
    preload/module/base/own_lock.h \
    preload/module/base/real.c \
    preload/module/base/real.h \
    preload/module/base/scratch.c \
    preload/module/base/scratch.h \
    preload/module/base/settings.c \
    preload/module/base/settings.h \
    preload/module/names/library.c \
    preload/module/names/library.h \
    preload/module/names/lookup.c \
    preload/module/names/lookup.h \
    preload/module/names/lost.c \
    preload/module/names/lost.h \
    preload/module/names/maps.c \
    preload/module/names/maps.h \
    preload/module/names/modules.c \
    preload/module/names/modules.h \
    preload/module/names/objects.c \
    preload/module/names/objects.h \
    preload/module/files/keeper_call.c \
    preload/module/files/keeper_call.h \
    preload/module/files/keeper_place.c \
    preload/module/files/keeper_place.h \
    preload/module/files/keeper_spawn.c \
    preload/module/files/keeper_spawn.h \
    preload/module/files/mapped.c \
    preload/module/files/mapped.h \
    preload/module/watch/matches.c \
    preload/module/watch/matches.h \
    preload/module/watch/observe.c \
    preload/module/watch/observe.h \
    preload/module/watch/report.c \
    preload/module/watch/report.h \
    preload/module/watch/report_output.c \
    preload/module/watch/report_output.h \
    preload/module/hooks/begin.c \
    preload/module/hooks/c11.c \
    preload/module/hooks/cond.c \
    preload/module/hooks/cond.h \
    preload/module/hooks/loading.c \
    preload/module/hooks/lockfile.c \
    preload/module/hooks/mutex.c \
    preload/module/hooks/mutex.h \
    preload/module/hooks/ready.c \
    preload/module/hooks/ready.h \
    preload/module/hooks/root.c \
    preload/module/hooks/rwlock.c \
    preload/shared/export.h \
    preload/shared/kernel_lock.c \
    preload/shared/kernel_lock.h \
    $(preload_common)
preload_libdmutex_preload_la_LIBADD =
preload_libdmutex_preload_la_LDFLAGS = \
    -module \
    -avoid-version \
    -shared \
    -Wl,--as-needed \
    -Wl,-z,nodelete \
    $(HARDENING_LDFLAGS) \
    -Wl,--version-script=$(srcdir)/preload/module/preload.map
EXTRA_preload_libdmutex_preload_la_DEPENDENCIES = preload/module/preload.map
EXTRA_DIST += preload/module/preload.map

# Files of the library's ground floor that all parts of the preload layer are built with.
preload_base = \
    libdmutex/base/fileid.h \
    libdmutex/base/place.c \
    libdmutex/base/place.h \
    libdmutex/base/shield.c \
    libdmutex/base/shield.h \
    libdmutex/base/stderr.c \
    libdmutex/base/stderr.h \
    libdmutex/base/text.c \
    libdmutex/base/text.h

# The second module, for --list.
pkglib_LTLIBRARIES += preload/libdmutex-observer.la
preload_libdmutex_observer_la_CPPFLAGS = $(AM_CPPFLAGS)
preload_libdmutex_observer_la_CFLAGS = $(preload_cflags)
preload_libdmutex_observer_la_SOURCES = \
    $(preload_base) \
    preload/observer/observer.c \
    preload/shared/export.h \
    preload/shared/seen.c \
    preload/shared/seen.h \
    preload/shared/text.c \
    preload/shared/text.h
preload_libdmutex_observer_la_LIBADD =
preload_libdmutex_observer_la_LDFLAGS = \
    $(HARDENING_LDFLAGS) \
    -module \
    -avoid-version \
    -shared \
    -Wl,--as-needed \
    -Wl,-z,nodelete

# Shared by the module and dmutex-run.
preload_common = \
    $(preload_base) \
    preload/shared/elffile.c \
    preload/shared/elffile.h \
    preload/shared/keeper_talk.h \
    preload/shared/rules.c \
    preload/shared/rules.h \
    preload/shared/seen.c \
    preload/shared/seen.h \
    preload/shared/text.c \
    preload/shared/text.h \
    preload/shared/url_file.c \
    preload/shared/url_file.h \
    preload/shared/used.h

# ---------------------------------------------------------------------------
# dmutex-run
# ---------------------------------------------------------------------------
noinst_LTLIBRARIES += preload/librun.la
preload_librun_la_CPPFLAGS = $(AM_CPPFLAGS) -DBINDIR='"$(bindir)"' -DPKGLIBDIR='"$(pkglibdir)"'
preload_librun_la_CFLAGS = $(common_cflags) $(HARDENING_CFLAGS) $(GLIB_CFLAGS)
preload_librun_la_LIBADD = $(GLIB_LIBS)
preload_librun_la_SOURCES = \
    libdmutex/config/conffile.c \
    libdmutex/config/conffile.h \
    libdmutex/base/file.c \
    libdmutex/base/file.h \
    libdmutex/base/relay.c \
    libdmutex/base/relay.h \
    preload/run/ask.c \
    preload/run/ask.h \
    preload/run/binary.c \
    preload/run/binary.h \
    preload/run/cache.c \
    preload/run/cache.h \
    preload/run/child.c \
    preload/run/child.h \
    preload/run/config.c \
    preload/run/config.h \
    preload/run/config_files.c \
    preload/run/config_files.h \
    preload/run/config_lines.c \
    preload/run/config_lines.h \
    preload/run/environment.c \
    preload/run/environment.h \
    preload/run/gather.c \
    preload/run/gather.h \
    preload/run/holders.c \
    preload/run/holders.h \
    preload/run/listing.c \
    preload/run/listing.h \
    preload/run/loaded.c \
    preload/run/loaded.h \
    preload/run/mark.c \
    preload/run/mark.h \
    preload/run/module.c \
    preload/run/module.h \
    preload/run/options.c \
    preload/run/options.h \
    preload/run/place.c \
    preload/run/place.h \
    preload/run/plan.c \
    preload/run/plan.h \
    preload/run/program.c \
    preload/run/program.h \
    preload/run/refuse.c \
    preload/run/refuse.h \
    preload/run/resolve.c \
    preload/run/resolve.h \
    preload/run/wording.c \
    preload/run/wording.h \
    $(preload_common)

bin_PROGRAMS += preload/dmutex-run
preload_dmutex_run_SOURCES = preload/run/main.c
preload_dmutex_run_CFLAGS = $(common_cflags) $(HARDENING_CFLAGS) $(PIE_CFLAGS) $(GLIB_CFLAGS)
preload_dmutex_run_LDADD = preload/librun.la libdmutex/libdmutex.la
preload_dmutex_run_LDFLAGS = $(HARDENING_LDFLAGS) $(PIE_LDFLAGS)

# The same for the tests: not the script in which libtool wraps installed programs, because the script
# has a separate LD_LIBRARY_PATH.
noinst_PROGRAMS += preload/here/dmutex-run
preload_here_dmutex_run_SOURCES = preload/run/main.c
preload_here_dmutex_run_CFLAGS = $(common_cflags) $(GLIB_CFLAGS)
preload_here_dmutex_run_LDADD = $(preload_dmutex_run_LDADD)
