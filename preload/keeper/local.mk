# dmutex-keeper, which holds the distributed locks of lock files.  Installed, so with libtool's wrapper
# in the build tree, unlike programs that are not installed.
pkglibexec_PROGRAMS += preload/keeper/dmutex-keeper
preload_keeper_dmutex_keeper_CFLAGS = $(common_cflags) $(HARDENING_CFLAGS) $(PIE_CFLAGS) $(GLIB_CFLAGS)
preload_keeper_dmutex_keeper_LDFLAGS = $(HARDENING_LDFLAGS) $(PIE_LDFLAGS)
preload_keeper_dmutex_keeper_LDADD = libdmutex/libdmutex.la $(GLIB_LIBS)
preload_keeper_dmutex_keeper_SOURCES = \
    libdmutex/base/output.c \
    libdmutex/base/output.h \
    $(preload_base) \
    preload/keeper/caller.c \
    preload/keeper/caller.h \
    preload/keeper/errand.c \
    preload/keeper/errand.h \
    preload/keeper/hold.c \
    preload/keeper/hold.h \
    preload/keeper/holders.c \
    preload/keeper/holders.h \
    preload/keeper/holds.c \
    preload/keeper/holds.h \
    preload/keeper/life.c \
    preload/keeper/life.h \
    preload/keeper/main.c \
    preload/keeper/probe.c \
    preload/keeper/probe.h \
    preload/keeper/proc_locks.c \
    preload/keeper/proc_locks.h \
    preload/keeper/say.c \
    preload/keeper/say.h \
    preload/keeper/voice.c \
    preload/keeper/voice.h \
    preload/keeper/watch.c \
    preload/keeper/watch.h \
    preload/keeper/wish.h \
    preload/keeper/witness.c \
    preload/keeper/witness.h \
    preload/shared/keeper_talk.h \
    preload/shared/kernel_lock.c \
    preload/shared/kernel_lock.h \
    preload/shared/rules.h \
    preload/shared/text.c \
    preload/shared/text.h
