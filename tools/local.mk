# The tools.  Both are linked with the library's parts, not with libdmutex.so: dmutex-names only with the lowest
# layer; dmutex because it has views of the store that the library does not export (HACKING.md).
#
# There are two dmutex, which differ in the folder of the modules: one is installed, the other one runs in this tree.
bin_PROGRAMS += tools/dmutex-names tools/installed/dmutex
noinst_PROGRAMS += tools/dmutex
noinst_LTLIBRARIES += tools/libdmutex-tool.la

tools_dmutex_names_SOURCES = tools/json.c tools/json.h tools/names.c tools/names.h tools/names_main.c
tools_dmutex_names_CFLAGS = $(common_cflags) $(HARDENING_CFLAGS) $(PIE_CFLAGS)
tools_dmutex_names_LDADD = libdmutex/libnames.la $(up_to_base)
tools_dmutex_names_LDFLAGS = $(HARDENING_LDFLAGS) $(PIE_LDFLAGS)

tools_libdmutex_tool_la_SOURCES = \
    tools/acl.c \
    tools/break.c \
    tools/chain.c \
    tools/chain.h \
    tools/command.c \
    tools/command.h \
    tools/dmutex.c \
    tools/deadlock.c \
    tools/deadlock.h \
    tools/doctor.c \
    tools/doctor.h \
    tools/doctor_cluster.c \
    tools/doctor_etcd.c \
    tools/doctor_link.c \
    tools/doctor_memcached.c \
    tools/doctor_mariadb.c \
    tools/doctor_postgres.c \
    tools/doctor_quorum.c \
    tools/doctor_sentinels.c \
    tools/doctor_server.c \
    tools/doctor_zookeeper.c \
    tools/gather.c \
    tools/gather.h \
    tools/json.c \
    tools/json.h \
    tools/leaving.c \
    tools/leaving.h \
    tools/keeper.c \
    tools/keeper.h \
    tools/list.c \
    tools/local.c \
    tools/names.c \
    tools/names.h \
    tools/names_subcommand.c \
    tools/probe.c \
    tools/probe.h \
    tools/rights.c \
    tools/rights.h \
    tools/run.c \
    tools/say.c \
    tools/say.h \
    tools/screen.c \
    tools/screen.h \
    tools/seen.c \
    tools/seen.h \
    tools/servant.c \
    tools/servant.h \
    tools/show.c \
    tools/sql.c \
    tools/token.c \
    tools/tool.c \
    tools/tool.h \
    tools/top.c \
    tools/tree.c \
    tools/tree.h \
    tools/wait.c \
    tools/waiting.c \
    tools/waiting.h
tools_libdmutex_tool_la_CFLAGS = $(common_cflags) $(HARDENING_CFLAGS) $(HIREDIS_CFLAGS)
tools_installed_dmutex_SOURCES =
tools_installed_dmutex_LDADD = tools/libdmutex-tool.la $(up_to_api) libdmutex/libpostgres-schema.la libdmutex/libmaria-schema.la
tools_installed_dmutex_LDFLAGS = $(HARDENING_LDFLAGS) $(PIE_LDFLAGS)
tools_dmutex_SOURCES = libdmutex/stores/postgres/folder.c libdmutex/stores/mariadb/folder.c
tools_dmutex_CPPFLAGS = $(AM_CPPFLAGS) -DPKGLIBDIR='"$(abs_top_builddir)/libdmutex/.libs/libdmutex"'
tools_dmutex_CFLAGS = $(common_cflags) $(HARDENING_CFLAGS) $(PIE_CFLAGS)
tools_dmutex_LDADD = $(tools_installed_dmutex_LDADD)
tools_dmutex_LDFLAGS = $(tools_installed_dmutex_LDFLAGS)

# For tracers and debuggers.
trace_scripts = tools/trace/dmutex-holds.bt tools/trace/dmutex-waits.bt
tracedir = $(pkgdatadir)
nodist_trace_DATA = $(trace_scripts)
$(trace_scripts): %.bt: %.bt.in Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && sed 's|@libdir@|$(libdir)|' $< >$@
CLEANFILES += $(trace_scripts)
EXTRA_DIST += $(trace_scripts:=.in) tools/trace/dmutex-gdb.py

# gdb loads the file with the library, whose full name it must begin with.
gdb_script = $(datadir)/gdb/auto-load$(libdir)/libdmutex.so.0.0.0-gdb.py
install-data-local:
	$(MKDIR_P) '$(DESTDIR)$(dir $(gdb_script))'
	$(INSTALL_DATA) $(srcdir)/tools/trace/dmutex-gdb.py '$(DESTDIR)$(gdb_script)'
uninstall-local:
	rm -f '$(DESTDIR)$(gdb_script)'
