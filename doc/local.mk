# Manual pages; the section is the file's suffix. And what is for developers: doc/design.
dist_man_MANS = \
    doc/man/dcond_init.3 \
    doc/man/dcond_wait.3 \
    doc/man/dmutex-keeper.8 \
    doc/man/dmutex-names.1 \
    doc/man/dmutex.1 \
    doc/man/dmutex-preload.5 \
    doc/man/dmutex-preload.7 \
    doc/man/dmutex-pthread.7 \
    doc/man/dmutex-run.1 \
    doc/man/dmutex-testing.7 \
    doc/man/dmutex.7 \
    doc/man/dmutex.conf.5 \
    doc/man/dmutex.hpp.3 \
    doc/man/dmutex_configure_np.3 \
    doc/man/dmutex_init.3 \
    doc/man/dmutex_lock.3 \
    doc/man/dmutex_np.3 \
    doc/man/dmutex_stats_np.3 \
    doc/man/dmutexattr.3

# The other functions of a page, so that man finds them by name.
links_to_cond_init = \
    doc/links/dcond_destroy.3 \
    doc/links/dcond_getname_np.3 \
    doc/links/dcond_init_np.3 \
    doc/links/dcondattr_destroy.3 \
    doc/links/dcondattr_getclock.3 \
    doc/links/dcondattr_getname_np.3 \
    doc/links/dcondattr_getpshared.3 \
    doc/links/dcondattr_init.3 \
    doc/links/dcondattr_setclock.3 \
    doc/links/dcondattr_setname_np.3 \
    doc/links/dcondattr_setpshared.3
links_to_cond_wait = \
    doc/links/dcond_broadcast.3 \
    doc/links/dcond_clockwait.3 \
    doc/links/dcond_signal.3 \
    doc/links/dcond_timedwait.3
links_to_configure = \
    doc/links/dmutex_readnames_np.3 \
    doc/links/dmutex_setlog_np.3 \
    doc/links/dmutex_setlost_np.3 \
    doc/links/dmutex_strerror_np.3 \
    doc/links/dmutex_version_np.3
links_to_init = \
    doc/links/dmutex_destroy.3 \
    doc/links/dmutex_getname_np.3 \
    doc/links/dmutex_getprioceiling.3 \
    doc/links/dmutex_init_np.3 \
    doc/links/dmutex_setprioceiling.3
links_to_lock = \
    doc/links/dmutex_clocklock.3 \
    doc/links/dmutex_consistent.3 \
    doc/links/dmutex_timedlock.3 \
    doc/links/dmutex_trylock.3 \
    doc/links/dmutex_unlock.3
links_to_np = \
    doc/links/dmutex_forceunlock_np.3 \
    doc/links/dmutex_getinfo_np.3 \
    doc/links/dmutex_holdcount_np.3 \
    doc/links/dmutex_islocked_np.3 \
    doc/links/dmutex_remaining_np.3 \
    doc/links/dmutex_renew_np.3 \
    doc/links/dmutex_token_np.3
links_to_attr = \
    doc/links/dmutexattr_destroy.3 \
    doc/links/dmutexattr_getfairness_np.3 \
    doc/links/dmutexattr_getlease_np.3 \
    doc/links/dmutexattr_getlinger_np.3 \
    doc/links/dmutexattr_getmaxhold_np.3 \
    doc/links/dmutexattr_getname_np.3 \
    doc/links/dmutexattr_getprioceiling.3 \
    doc/links/dmutexattr_getprotocol.3 \
    doc/links/dmutexattr_getpshared.3 \
    doc/links/dmutexattr_getrobust.3 \
    doc/links/dmutexattr_gettype.3 \
    doc/links/dmutexattr_init.3 \
    doc/links/dmutexattr_setfairness_np.3 \
    doc/links/dmutexattr_setlease_np.3 \
    doc/links/dmutexattr_setlinger_np.3 \
    doc/links/dmutexattr_setmaxhold_np.3 \
    doc/links/dmutexattr_setname_np.3 \
    doc/links/dmutexattr_setprioceiling.3 \
    doc/links/dmutexattr_setprotocol.3 \
    doc/links/dmutexattr_setpshared.3 \
    doc/links/dmutexattr_setrobust.3 \
    doc/links/dmutexattr_settype.3

links_to_testing = \
    doc/links/dmutex_test_abandon.3 \
    doc/links/dmutex_test_group_setup.3 \
    doc/links/dmutex_test_group_teardown.3 \
    doc/links/dmutex_test_server_kill.3 \
    doc/links/dmutex_test_server_pause.3 \
    doc/links/dmutex_test_server_restart.3 \
    doc/links/dmutex_test_server_resume.3 \
    doc/links/dmutex_test_server_start.3 \
    doc/links/dmutex_test_server_start_postgres.3 \
    doc/links/dmutex_test_server_stop.3 \
    doc/links/dmutex_test_server_url.3

# The configuration is found by the name of the file, too.
links_to_preload = doc/links/preload.conf.5

$(links_to_cond_init): page = man3/dcond_init.3
$(links_to_cond_wait): page = man3/dcond_wait.3
$(links_to_configure): page = man3/dmutex_configure_np.3
$(links_to_init): page = man3/dmutex_init.3
$(links_to_lock): page = man3/dmutex_lock.3
$(links_to_np): page = man3/dmutex_np.3
$(links_to_attr): page = man3/dmutexattr.3
$(links_to_preload): page = man5/dmutex-preload.5
$(links_to_testing): page = man7/dmutex-testing.7

man_links = \
    $(links_to_cond_init) \
    $(links_to_cond_wait) \
    $(links_to_configure) \
    $(links_to_init) \
    $(links_to_lock) \
    $(links_to_np) \
    $(links_to_attr) \
    $(links_to_preload) \
    $(links_to_testing)
$(man_links): Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D)
	$(AM_V_at)echo '.so $(page)' >$@

nodist_man_MANS = $(man_links)
CLEANFILES += $(man_links)

script_tests += \
    doc/check-acl.sh \
    doc/check-man.sh \
    doc/check-rendering.sh

EXTRA_DIST += \
    HACKING.md \
    README.md \
    SECURITY.md \
    doc/design/chaos.md \
    doc/design/conditions.md \
    doc/design/connection.md \
    doc/design/errors.md \
    doc/design/etcd.md \
    doc/design/mariadb.md \
    doc/design/faults.md \
    doc/design/inputs.md \
    doc/design/lines.md \
    doc/design/memcached.md \
    doc/design/models.md \
    doc/design/performance.md \
    doc/design/preload.md \
    doc/design/programs.md \
    doc/design/protocol.md \
    doc/design/reliability.md \
    doc/design/cluster.md \
    doc/design/quorum.md \
    doc/design/registers.md \
    doc/design/redis-registers.md \
    doc/design/postgres.md \
    doc/design/sentinel.md \
    doc/design/size.md \
    doc/design/store.md \
    doc/design/threads-and-fork.md \
    doc/design/zookeeper.md \
    doc/guide/errors.md \
    doc/guide/etcd.md \
    doc/guide/mariadb.md \
    doc/guide/failures.md \
    doc/guide/figures.md \
    doc/guide/memcached.md \
    doc/guide/operating.md \
    doc/guide/postgres.md \
    doc/guide/porting.md \
    doc/guide/preloading.md \
    doc/guide/promises.md \
    doc/guide/servers.md \
    doc/guide/testing.md \
    doc/guide/troubleshooting.md \
    doc/guide/tuning.md \
    doc/guide/tutorial.md \
    doc/guide/version-column.md \
    doc/guide/zookeeper.md \
    doc/img/acquire.svg \
    doc/img/draw-sequence.awk \
    doc/img/failover.svg \
    doc/img/handoff.svg \
    doc/grafana.json \
    doc/img/handoffs.svg \
    doc/img/loss.svg \
    doc/img/pause.svg \
    doc/img/shares.svg \
    $(sequences) \
    doc/html/check.awk \
    doc/html/path.awk \
    doc/html/make-html.sh \
    doc/html/page.awk \
    doc/html/slug.awk \
    doc/html/style.css \
    doc/peers.md

# The manual as one tree in html/: manual pages by mandoc, pages in markdown by cmark-gfm.  `make html`; not part of `all`.
html-local: $(man_links)
	@test -n '$(CMARK_GFM)' && test -n '$(MANDOC)' || { \
	    echo 'make html needs cmark-gfm and mandoc: apt install cmark-gfm mandoc, and run configure again'; \
	    exit 1; }
	$(AM_V_GEN)srcdir='$(srcdir)' CMARK_GFM='$(CMARK_GFM)' $(SHELL) $(srcdir)/doc/html/make-html.sh html
	@echo 'The manual begins at html/index.html'

# The pictures of the slot map, of one text each.
sequences = \
    doc/img/sequences/acquire.seq \
    doc/img/sequences/failover.seq \
    doc/img/sequences/handoff.seq \
    doc/img/sequences/loss.seq \
    doc/img/sequences/pause.seq
sequences:
	$(AM_V_at)for text in $(sequences); do \
	    name=$${text##*/}; name=$${name%.seq}; \
	    $(AWK) -f $(srcdir)/doc/img/draw-sequence.awk $(srcdir)/$$text >$(srcdir)/doc/img/$$name.svg || exit; \
	done
.PHONY: sequences
