# The preload layer: a module, the program that runs others with it, and the keeper of lock files.
# doc/design/preload.md says how they work together.

# Unwind tables, for threads are cancelled in waits; not -fexceptions, which would need libgcc_s.
preload_cflags = $(common_cflags) -fvisibility=hidden -fasynchronous-unwind-tables

# ---------------------------------------------------------------------------
# The module: linked to libc only.  An anonymous version script, so that its names satisfy references
# to any version of libc's; dlsym(RTLD_NEXT) must not be a jump.
# ---------------------------------------------------------------------------
pkglib_LTLIBRARIES += preload/libdmutex-preload.la
preload_libdmutex_preload_la_CFLAGS = $(preload_cflags)
preload_libdmutex_preload_la_SOURCES = \
    preload/c11.c \
    preload/cond.c \
    preload/cond.h \
    preload/library.c \
    preload/library.h \
    preload/loading.c \
    preload/lost.c \
    preload/lost.h \
    preload/maps.c \
    preload/maps.h \
    preload/modules.c \
    preload/modules.h \
    preload/mutex.c \
    preload/mutex.h \
    preload/objects.c \
    preload/objects.h \
    preload/observe.c \
    preload/observe.h \
    preload/real.c \
    preload/real.h \
    preload/report.c \
    preload/report.h \
    preload/seen.h \
    preload/settings.c \
    preload/settings.h \
    $(preload_common)
preload_libdmutex_preload_la_LIBADD =
preload_libdmutex_preload_la_LDFLAGS = \
    -module \
    -avoid-version \
    -shared \
    -Wl,--as-needed \
    -Wl,-rpath,'$$ORIGIN/..' \
    -Wl,-z,nodelete \
    -Wl,--version-script=$(srcdir)/preload/preload.map
EXTRA_preload_libdmutex_preload_la_DEPENDENCIES = preload/preload.map
EXTRA_DIST += preload/preload.map

# What the module shares with dmutex-run.
preload_common = \
    preload/elffile.c \
    preload/elffile.h \
    preload/rules.c \
    preload/rules.h \
    preload/text.c \
    preload/text.h
