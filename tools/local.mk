# Small programs beside the library.
bin_PROGRAMS += tools/dmutex-names
tools_dmutex_names_SOURCES = tools/names.c
tools_dmutex_names_CFLAGS = $(common_cflags) $(HARDENING_CFLAGS) $(PIE_CFLAGS)
tools_dmutex_names_LDADD = $(up_to_base)
tools_dmutex_names_LDFLAGS = $(HARDENING_LDFLAGS) $(PIE_LDFLAGS)
