/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The configuration of dmutex-run: the files, the content, the sentence for each mistake, and the rules for the module.
 */
#include "run.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <glib.h>

#include "run/config.h"
#include "run/config_files.h"
#include "run/gather.h"
#include "run/wording.h"
#include "shared/url_file.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- files ------------------------------------------------------------------------------- */

static void make_folders(void)
{
    command_run("cd %s && rm -f .config/dmutex/preload.conf && mkdir -p etc.conf.d", folder);
    assert_status(0);
}

/* The paths found, without the folder, separated by blanks. */
static const char *found(const char *option)
{
    static char text[1000];
    g_autofree char *system_file = g_strconcat(folder, "/etc.conf", NULL);
    g_autoptr(GPtrArray) paths = NULL;

    text[0] = '\0';
    if (!config_files_find(option, system_file, &paths, NULL))
        return NULL;
    for (guint i = 0; i < paths->len; i++) {
        const char *path = paths->pdata[i];

        assert_true(g_str_has_prefix(path, folder));
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? " " : "", path + strlen(folder) + 1);
    }
    return text;
}

/* Only the nearest configuration is read: that of --config, else DMUTEX_CONF, else the user's, else the system's. */
static void test_config_is_of_the_nearest_place_when_there_are_more(void **state)
{
    char named[100], other[100];

    (void)state;
    make_folders();
    assert_string_equal(found(NULL), "");
    write_file("etc.conf", 0644, " ");
    assert_string_equal(found(NULL), "etc.conf");
    write_file(".config/dmutex/preload.conf", 0644, " ");
    assert_string_equal(found(NULL), ".config/dmutex/preload.conf");
    strcpy(other, write_file("other.conf", 0644, " "));
    setenv("DMUTEX_CONF", other, 1);
    assert_string_equal(found(NULL), "other.conf");
    strcpy(named, write_file("named.conf", 0644, " "));
    assert_string_equal(found(named), "named.conf");
    setenv("DMUTEX_CONF", "", 1);
    assert_string_equal(found(NULL), ".config/dmutex/preload.conf");
    unsetenv("DMUTEX_CONF");
    command_run("rm %s/.config/dmutex/preload.conf", folder);
}

/*
 * The system's file comes first, then the files of the directory by name; hidden files and other endings are left out.
 */
static void test_config_of_the_system_is_in_order_when_it_has_a_directory(void **state)
{
    (void)state;
    make_folders();
    write_file("etc.conf.d/20-b.conf", 0644, " ");
    write_file("etc.conf.d/10-z.conf", 0644, " ");
    write_file("etc.conf.d/.hidden.conf", 0644, " ");
    write_file("etc.conf.d/30-a.conf.bak", 0644, " ");
    write_file("etc.conf", 0644, " ");
    assert_string_equal(found(NULL), "etc.conf etc.conf.d/10-z.conf etc.conf.d/20-b.conf");
    command_run("rm %s/etc.conf", folder);
    assert_string_equal(found(NULL), "etc.conf.d/10-z.conf etc.conf.d/20-b.conf");
    command_run("rm -r %s/etc.conf.d", folder);
}

/* A named file must exist: no other file is taken instead. */
static void test_config_is_refused_when_the_named_file_is_missing(void **state)
{
    (void)state;
    command_run("exec %s --config %s/none.conf true", dmutex_run, folder);
    assert_status(78);
    assert_errors("/none.conf: No such file or directory; it was named by --config");
    command_run("DMUTEX_CONF=%s/none.conf exec %s true", folder, dmutex_run);
    assert_status(78);
    assert_errors("it was named by DMUTEX_CONF");
}

/* A file without rules would let the command run undistributed: a link to nothing is not an absent file. */
static void test_config_is_refused_when_it_is_a_link_to_nothing(void **state)
{
    (void)state;
    make_folders();
    command_run("cd %s && ln -s gone/preload.conf .config/dmutex/preload.conf", folder);
    command_run("exec %s true", dmutex_run);
    assert_status(78);
    assert_errors("dmutex/preload.conf: a link leads to gone/preload.conf, which is not there");
    make_folders();
}

/* Files of /proc say that they are empty: such a file was taken for one without rules. */
static void test_config_is_read_when_its_size_is_not_known(void **state)
{
    char url[URL_ROOM], name[16];
    const char *reason;

    (void)state;
    command_run("exec %s --config /proc/self/comm true", dmutex_run);
    assert_status(78);
    assert_errors("/proc/self/comm: ");
    prctl(PR_GET_NAME, name);
    prctl(PR_SET_NAME, "[server]\nUrl=h");
    assert_true(url_file_read("/proc/thread-self/comm", url, &reason));
    assert_string_equal(url, "h");
    prctl(PR_SET_NAME, name);
}

/* An unreadable configuration is refused, not ignored, because the rules would silently not hold. */
static void test_config_is_refused_when_it_cannot_be_looked_at(void **state)
{
    g_autofree char *system_file = g_strconcat(folder, "/closed/etc.conf", NULL);
    uid_t user = getuid() ? getuid() : 65534;
    pid_t pid;

    (void)state;
    command_run("cd %s && mkdir -m 0700 closed && touch closed/etc.conf && chmod %s closed && chmod 0755 .", folder,
                getuid() ? "0" : "0700");
    assert_status(0);
    pid = keeper_fork();
    if (pid == 0) {
        g_autoptr(GPtrArray) paths = NULL;
        g_autofree char *text = NULL;

        if (setresuid(user, user, user) < 0)
            _exit(99);
        if (!config_files_find(NULL, system_file, &paths, NULL))
            _exit(0); /* refused at once */
        text = paths->len ? config_files_load(paths->pdata[0], NULL) : NULL;
        _exit(paths->len && !text ? 0 : 1);
    }
    assert_int_equal(keeper_reap(pid), 0);
    command_run("chmod 0700 %s/closed", folder);
}

/* A configuration that others can write is refused. */
static void test_config_is_refused_when_others_can_write_it(void **state)
{
    static const int modes[] = { 0664, 0646, 0666 };
    const char *path;

    (void)state;
    for (size_t i = 0; i < COUNT(modes); i++) {
        path = write_file("unsafe.conf", modes[i], "[server]\nUrl=redis://h\n");
        command_run("exec %s --config %s true", dmutex_run, path);
        assert_status(78);
        assert_errors("unsafe.conf: can be written by others than its owner: chmod go-w ");
    }
    command_run("mkdir -m 0777 %s/open", folder);
    path = write_file("open/a.conf", 0644, "[server]\nUrl=redis://h\n");
    command_run("exec %s --config %s true", dmutex_run, path);
    assert_status(78);
    assert_errors("/open/a.conf: others could put another file in its place, because ");
    assert_errors("/open can be changed by others than its owner, user ");
}

/* A configuration is refused if others can change a directory far above, or a link on the way. */
static void test_config_is_refused_when_others_can_change_the_way_to_it(void **state)
{
    const char *path;

    (void)state;
    command_run("cd %s && mkdir -p far/near/here && chmod 0777 far", folder);
    path = write_file("far/near/here/a.conf", 0644, "[server]\nUrl=redis://h\n");
    command_run("exec %s --config %s true", dmutex_run, path);
    assert_status(78);
    assert_errors("/far can be changed by others than its owner, user ");
    command_run("cd %s && chmod 0755 far && mkdir -m 0777 links && ln -s ../far/near links/way", folder);
    command_run("exec %s --config %s/links/way/here/a.conf true", dmutex_run, folder);
    assert_status(78);
    assert_errors("/links can be changed by others");
    command_run("cd %s && chmod 1777 links", folder); /* as /tmp: the link's owner decides */
    command_run("exec %s --config %s/links/way/here/a.conf true", dmutex_run, folder);
    assert_status(0);
    if (getuid() != 0)
        return;
    command_run("cd %s && chown -h 65534 links/way", folder);
    command_run("exec %s --config %s/links/way/here/a.conf true", dmutex_run, folder);
    assert_status(78);
    assert_errors("/links/way belongs to user 65534");
}

/*
 * In a user namespace with a number only for this user, root's files seem to belong to another user.  Unlike /tmp, /mnt
 * is a folder where only root puts things.
 */
static void test_config_of_root_is_read_when_root_has_no_number(void **state)
{
    static const char enter[] = "setpriv --reuid 61234 --regid 61234 --clear-groups unshare -U --map-user=1000";

    (void)state;
    if (geteuid() != 0)
        return;
    command_run("%s true", enter);
    if (ran.status != 0) {
        print_message("# unshare -U is forbidden here: not looked at\n");
        return;
    }
    write_file("roots.conf", 0644, "[server]\nUrl=redis://h\n[lock a]\nMatch=flock:/a\n");
    command_run("mkdir -m 755 %1$s/roots && mv %1$s/roots.conf %1$s/roots/a.conf && "
                "exec unshare -m sh -c 'mount --bind %1$s/roots /mnt && "
                "exec %2$s %3$s --config /mnt/a.conf --dry-run true'",
                folder, enter, dmutex_run);
    assert_status(0);
    assert_string_equal(ran.errors, "");
}

/* Another user's file is refused, unless the user is root. */
static void test_config_is_refused_when_it_is_another_users(void **state)
{
    const char *path = write_file("theirs.conf", 0644, "[server]\nUrl=redis://h\n");
    g_autoptr(GError) error = NULL;
    bool is_root = getuid() == 0;

    (void)state;
    if (is_root)
        assert_int_equal(chown(path, 65534, (gid_t)-1), 0);
    else
        path = "/etc/passwd"; /* root's file is accepted */
    g_free(config_files_load(path, &error));
    assert_int_equal(error != NULL, is_root);
    if (is_root)
        assert_non_null(strstr(error->message, "belongs to user 65534, who is neither root nor you"));
    unlink(path);
}

/* ---- good content ------------------------------------------------------------------------ */

/* The rules that the module gets for the configuration; fails if the configuration is refused. */
static char *compiled(const char *text)
{
    g_autoptr(GPtrArray) paths = g_ptr_array_new();
    g_autoptr(GError) error = NULL;
    struct plan *plan = plan_new();
    char *words;

    g_ptr_array_add(paths, (char *)write_file("a.conf", 0644, "%s", text));
    if (!config_read(plan, paths, &error))
        fail_msg("%s\nis refused: %s", text, error->message);
    words = wording_of_list(plan->rules);
    plan_free(plan);
    return words;
}

static void assert_compiled(const char *text, const char *wanted)
{
    g_autofree char *words = compiled(text);

    assert_string_equal(words, wanted);
}

/* Each key, each unit, and all forms of rules reach the module. */
static void test_config_is_compiled_when_it_is_valid(void **state)
{
    (void)state;
    assert_compiled("", "");
    assert_compiled("# nothing\n\n[server]\nUrl = redis://h\n", "");
    assert_compiled("[lock a/b]\nMatch=sym:legacyd:queue_lock\n", "sym:legacyd:queue_lock => a/b");
    assert_compiled("[lock a/b]\nMatch=sym:legacyd:array+0x28;off:d@build-id:0a1b+64;\n",
                    "sym:legacyd:array+0x28 => a/b; off:d@build-id:0a1b+0x40 => a/b");
    assert_compiled("[lock a]\nMatch=shm:/ring+0x40\nSharedState=yes\n[lock b]\nMatch=map:/srv/x+8\n",
                    "shm:/ring+0x40 => a sharedstate=yes; map:/srv/x+0x8 => b");
    assert_compiled("[lock a]\nMatch=sym:m:s\nLease=10s\nLinger=500ms\nRobust=yes\nOnDown=fail\nOnLost=signal:TERM\n"
                    "Program=legacyd\nRequired=yes\n",
                    "sym:m:s => a lease=10000 linger=500 robust=yes ondown=fail onlost=signal:TERM required=yes "
                    "program=legacyd");
    assert_compiled("[lock a]\nMatch=sym:m:s\nLease=2min\nRobust=no\nOnDown=block\nOnLost=kill\nRequired=no\n",
                    "sym:m:s => a lease=120000 robust=no onlost=kill required=no");
    assert_compiled("[lock a]\nMatch=sym:m:s\nLease=250\nOnLost=log\nRequired=auto\nSharedState=no\nShared=refuse\n",
                    "sym:m:s => a lease=250");
}

/* By default a lock file fails if the server is down, and a mutex waits; OnDown= changes each kind. */
static void test_config_keeps_ondown_apart_when_kinds_differ(void **state)
{
    (void)state;
    assert_compiled("[lock cron/%b]\nMatch=flock:/x/*.lock;fcntl:/x/y\nShared=exclusive\n",
                    "flock:/x/*.lock => cron/%b shared=exclusive; fcntl:/x/y => cron/%b shared=exclusive");
    assert_compiled("[defaults]\nOnDown=block\n[lock a]\nMatch=flock:/x;sym:m:s\n",
                    "flock:/x => a ondown=block; sym:m:s => a");
    assert_compiled("[defaults]\nOnDown=local\n[lock a]\nMatch=flock:/x\n[lock b]\nMatch=sym:m:s\nOnDown=block\n",
                    "flock:/x => a ondown=local; sym:m:s => b");
    assert_compiled("[defaults]\nOnDown=fail\n[lock a]\nMatch=flock:/x;sym:m:s\n",
                    "flock:/x => a; sym:m:s => a ondown=fail");
}

/* Defaults hold for locks before and after [defaults], and a lock's own key wins. */
static void test_config_defaults_hold_when_a_lock_says_nothing(void **state)
{
    (void)state;
    assert_compiled("[lock a]\nMatch=sym:m:s\n[lock b]\nMatch=sym:m:t\nLease=1s\nRobust=no\n"
                    "[defaults]\nLease=30s\nRobust=yes\n",
                    "sym:m:s => a lease=30000 robust=yes; sym:m:t => b lease=1000 robust=no");
}

/* Each condition variable of a mutex gets a separate name, in the mutex's group. */
static void test_config_names_conditions_apart_when_there_are_more(void **state)
{
    (void)state;
    assert_compiled("[lock a/b]\nMatch=sym:m:s\nCond=sym:m:filled; cond:sym:m:drained ;sym:m:third\nLease=1s\n",
                    "sym:m:s => a/b lease=1000; cond:sym:m:filled => a/b lease=1000; "
                    "cond:sym:m:drained => a/b.2 lease=1000; cond:sym:m:third => a/b.3 lease=1000");
    assert_compiled("[lock a]\nMatch=sym:m:s\nCond=sym:m:t;sym:m:u\n",
                    "sym:m:s => a; cond:sym:m:t => a; cond:sym:m:u => a/2");
}

/* Blanks, semicolons and backslashes in names and paths reach the module unchanged. */
static void test_config_escapes_when_a_byte_means_something(void **state)
{
    (void)state;
    assert_compiled("[lock a b;c]\nMatch=flock:/x y/a\\;b\\\\c\n", "flock:/x\\ y/a\\;b\\\\c => a\\ b\\;c");
    assert_compiled("[lock a]\nMatch=sym:m:s\nProgram=/opt/my app\n", "sym:m:s => a program=/opt/my\\ app");
}

/* Several files are one configuration: the defaults and the server of a file hold for all files. */
static void test_config_files_are_one_when_there_are_more(void **state)
{
    g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);
    struct plan *plan = plan_new();
    g_autofree char *words = NULL;

    (void)state;
    g_ptr_array_add(paths, g_strdup(write_file("1.conf", 0644, "[lock z]\nMatch=sym:m:s\n")));
    g_ptr_array_add(paths, g_strdup(write_file("2.conf", 0644,
                                               "[lock a]\nMatch=sym:m:s\n[defaults]\nLease=1s\n"
                                               "[server]\nUrl=redis://h/1\n")));
    assert_true(config_read(plan, paths, NULL));
    words = wording_of_list(plan->rules);
    assert_string_equal(words, "sym:m:s => z lease=1000; sym:m:s => a lease=1000");
    assert_string_equal(plan->url, "redis://h/1");
    assert_non_null(strstr(plan->url_from, "/2.conf: [server] Url"));
    plan_free(plan);
}

/* A path through a symbolic link is written as the kernel knows the path, as far as the path exists. */
static void test_config_resolves_links_when_files_are_named(void **state)
{
    g_autofree char *text = NULL, *wanted = NULL;

    (void)state;
    command_run("cd %s && mkdir -p real/deep && ln -sfn real link && touch real/there && ln -sf real/there alias",
                folder);
    assert_status(0);
    text = g_strdup_printf("[lock a]\nMatch=flock:%1$s/link/*.pid;flock:%1$s/link/none;flock:%1$s/alias;"
                           "fcntl:%1$s/link/deep/x*/y;flock:%1$s/l*/deep;flock:/*.pid\nProgram=%1$s/link/there\n",
                           folder);
    wanted = g_strdup_printf("flock:%1$s/real/*.pid => a program=%1$s/real/there; "
                             "flock:%1$s/real/none => a program=%1$s/real/there; "
                             "flock:%1$s/real/there => a program=%1$s/real/there; "
                             "fcntl:%1$s/real/deep/x*/y => a program=%1$s/real/there; "
                             "flock:%1$s/l*/deep => a program=%1$s/real/there; "
                             "flock:/*.pid => a program=%1$s/real/there",
                             folder);
    assert_compiled(text, wanted);
}

/* ---- bad content ------------------------------------------------------------------------- */

static const struct {
    const char *text, *sentence; /* the text after the file's name */
} bad[] = {
    { "[lock a]\nMatch=sym:m:s\n[lock b]\nMatch=sym:m:t\n[lock a]\nMatch=sym:m:u\n",
      ":5: [lock a] is in FILE:1 already: make one of the two" },
    { "[server]\nUrl=redis://h\n[server]\nUrl=redis://g\n", ":3: [server] is in FILE:1 already" },
    { "[lock a]\nMatch=sym:m:s\n# twice\n  Match = sym:m:t\n",
      ":4: [lock a] Match is in FILE:2 already: make one line of both, its values separated by ;" },
    { "[defaults]\nLease=1s\nLease=2s\n", ":3: [defaults] Lease is in FILE:2 already" },
    { "[lock a]\nMatch=sym:m:s\nLeese=1s\n",
      ": [lock a] Leese: there is no such key here: dmutex-preload(5) has the list" },
    { "[lock a]\nMatch=sym:m:s\nlease=1s\n", ": [lock a] lease: there is no such key; it is written Lease" },
    { "[lock a]\nMatch=sym:m:s\nMatch[de]=sym:m:s\n", ": [lock a] Match[de]: there is no such key" },
    { "[defaults]\nMatch=sym:m:s\n", ": [defaults] Match: there is no such key here" },
    { "[server]\nUrl=redis://h\nPort=1\n", ": [server] Port: there is no such key here, only Url" },
    { "[server]\n", ": [server]: has no Url" },
    { "[server]\nUrl=\n", ": [server] Url: is empty: write redis://HOST or unix:///PATH" },
    { "[locks a]\nMatch=sym:m:s\n",
      ": [locks a]: there is no such section: there are [server], [defaults] and [lock NAME]" },
    { "[lock]\nMatch=sym:m:s\n", ": [lock]: there is no such section" },
    { "[lock ]\nMatch=sym:m:s\n", ": [lock ]: a name must follow, without blanks around it" },
    { "[lock a ]\nMatch=sym:m:s\n", ": [lock a ]: a name must follow, without blanks around it" },
    { "[lock a]\nCond=sym:m:s\n", ": [lock a]: has no Match: which mutex or lock file is it?" },
    { "[lock a]\nMatch=\n", ": [lock a] Match: is empty" },
    { "Match=sym:m:s\n", ": Key file does not start with a group" },
    { "[lock a]\nMatch\n", ": Key file contains line" },
    { "[lock a\nMatch=sym:m:s\n", ": Key file contains line" },
    { "[lock a]\nMatch=flock:/x\\qy\n", ": [lock a] Match: Key file contains key" },
    { "[lock a]\nMatch=sym:m:s\nLease=10x\n", ": [lock a] Lease: \"10x\" is not a time from 100 ms to 1 hour" },
    { "[lock a]\nMatch=sym:m:s\nLease=99ms\n", ": [lock a] Lease: \"99ms\" is not a time from 100 ms to 1 hour" },
    { "[lock a]\nMatch=sym:m:s\nLease=61min\n", ": [lock a] Lease: \"61min\" is not a time from 100 ms to 1 hour" },
    { "[lock a]\nMatch=sym:m:s\nLease=\n", ": [lock a] Lease: \"\" is not a time from 100 ms to 1 hour" },
    { "[lock a]\nMatch=sym:m:s\nLease=1s onlost=kill\n", ": [lock a] Lease: \"1s onlost=kill\" is not a time" },
    { "[lock a]\nMatch=sym:m:s\nLease=1s; sym:m:t => b\n", ": [lock a] Lease: \"1s; sym:m:t => b\" is not a time" },
    { "[lock a]\nMatch=sym:m:s\nLinger=-1\n", ": [lock a] Linger: \"-1\" is not a time up to 1 hour" },
    { "[lock a]\nMatch=sym:m:s\nRobust=true\n", ": [lock a] Robust: \"true\" is not yes or no" },
    { "[lock a]\nMatch=sym:m:s\nOnDown=wait\n", ": [lock a] OnDown: \"wait\" is not block, fail or local" },
    { "[lock a]\nMatch=sym:m:s\nOnLost=signal:NONE\n",
      ": [lock a] OnLost: \"signal:NONE\" is not log, kill, or signal:TERM" },
    { "[lock a]\nMatch=sym:m:s\nProgram=\n", ": [lock a] Program: \"\" is not the name of a program" },
    { "[lock a]\nMatch=sym:m:s\nProgram=bin/x\n",
      ": [lock a] Match: bin/x is a relative path: write an absolute one, or only its last part" },
    { "[lock a]\nMatch=sym:m:s\nRequired=maybe\n", ": [lock a] Required: \"maybe\" is not yes, no or auto" },
    { "[lock a]\nMatch=sym:m:s\nSharedState=1\n", ": [lock a] SharedState: \"1\" is not yes or no" },
    { "[lock a]\nMatch=sym:m:s\nShared=yes\n", ": [lock a] Shared: \"yes\" is not exclusive or refuse" },
    { "[lock a]\nMatch=sym:m:s\nOnDown=local\n",
      ": [lock a] Match: sym:m:s: ondown=local: only a lock file has a local lock" },
    { "[defaults]\nRobust=maybe\n", ": [defaults] Robust: \"maybe\" is not yes or no" },
    { "[lock a]\nMatch=queue_lock\n",
      ": [lock a] Match: queue_lock: does not begin with sym:, off:, shm:, map:, flock: or fcntl:" },
    { "[lock a]\nMatch=sem:/x\n", ": [lock a] Match: sem:/x: semaphores are not distributed" },
    { "[lock a]\nMatch=sym:queue_lock\n", ": [lock a] Match: sym:queue_lock: not of the form sym:MODULE:SYMBOL" },
    { "[lock a]\nMatch=sym:bin/m:s\n", ": [lock a] Match: bin/m is a relative path" },
    { "[lock a]\nMatch=off:m+0x40\n", ": [lock a] Match: off:m+0x40: not of the form off:MODULE@build-id:HEX+OFFSET" },
    { "[lock a]\nMatch=off:m@build-id:XY+0x40\n", "not of the form off:MODULE@build-id:HEX+OFFSET" },
    { "[lock a]\nMatch=shm:ring+0x40\n", "not of the form shm:/NAME+OFFSET" },
    { "[lock a]\nMatch=map:/srv/x\n", "not of the form map:/PATH+OFFSET" },
    { "[lock a]\nMatch=flock:x.lock\n", "not of the form flock:/GLOB" },
    { "[lock a]\nMatch=cond:sym:m:s\n", ": [lock a] Match: a condition variable belongs into Cond=" },
    { "[lock a]\nMatch=sym:m:s\nCond=flock:/x\n",
      ": [lock a] Cond: cond:flock:/x: a file is not a condition variable" },
    { "[lock a/]\nMatch=sym:m:s\n", ": [lock a/] Match: \"a/\" cannot be a mutex's name: " },
    { "[lock %q]\nMatch=sym:m:s\n",
      ": [lock %q] Match: sym:m:s: its name has a % that is not one of %b, %p, %x, %u and %%" },
    { "[lock %p]\nMatch=flock:/x\n", ": [lock %p] Match: \"/x\" cannot be a mutex's name: " },
};

/* Each mistake is reported with file, section, key and reason, and the command is not run. */
static void test_config_is_refused_with_a_sentence_when_bad(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        const char *path = write_file("bad.conf", 0644, "%s", bad[i].text);
        g_auto(GStrv) parts = g_strsplit(bad[i].sentence, "FILE", -1);
        g_autofree char *sentence = g_strjoinv(path, parts), *named = g_strconcat(path, sentence, NULL);

        command_run("exec %s --config %s echo is run", dmutex_run, path);
        assert_status(78);
        assert_errors(sentence[0] == ':' ? named : sentence);
        assert_string_equal(ran.output, "");
    }
}

/* A name longer than a mutex's name can be is refused. */
static void test_config_is_refused_when_a_name_is_too_long(void **state)
{
    g_autofree char *name = g_strnfill(201, 'x');
    const char *path = write_file("long.conf", 0644, "[lock %s]\nMatch=sym:m:s\n", name);

    (void)state;
    command_run("exec %s --config %s true", dmutex_run, path);
    assert_status(78);
    assert_errors("is too long");
}

/* A directory, a FIFO, and bytes that are no text are refused. */
static void test_config_is_refused_when_it_is_no_text(void **state)
{
    const char *path;

    (void)state;
    command_run("exec %s --config %s true", dmutex_run, folder);
    assert_status(78);
    assert_errors("is not a file of at most 4 MiB");
    command_run("mkfifo %s/fifo; exec %s --config %s/fifo true", folder, dmutex_run, folder);
    assert_status(78);
    path = write_file("binary.conf", 0644, "[lock a]\n%c%c\n", 0xff, 0xfe);
    command_run("exec %s --config %s true", dmutex_run, path);
    assert_status(78);
    assert_errors("is not a text in UTF-8");
}

/* The same mistakes are reported for DMUTEX_MAP and -e, without a section. */
static void test_map_is_refused_with_a_sentence_when_bad(void **state)
{
    (void)state;
    command_run("DMUTEX_MAP='sym:m:s' exec %s true", dmutex_run);
    assert_status(78);
    assert_errors("DMUTEX_MAP: sym:m:s: must be followed by => and a name, with blanks around the =>");
    command_run("exec %s -e 'sym:m:s => a lease=1' true", dmutex_run);
    assert_status(78);
    assert_errors("-e: sym:m:s: lease=1: an unknown key, or a value that it cannot have");
}

/* ---- advice ------------------------------------------------------------------------------ */

/*
 * A warning is said for a mutex in shared memory, because other hosts do not see the memory; not with SharedState=yes.
 */
static void test_config_warns_when_memory_is_not_shared(void **state)
{
    const char *path = write_file("warn.conf", 0644, "[lock a]\nMatch=shm:/ring+0x40;map:/srv/x+0x8\n");

    (void)state;
    command_run("DMUTEX_URL=redis://h exec %s --config %s --dry-run true", dmutex_run, path);
    assert_status(0);
    assert_errors("[lock a] Match: shm:/ring+0x40: a mutex guards memory");
    assert_errors("[lock a] Match: map:/srv/x+0x8: a mutex guards memory");
    assert_errors("SharedState=yes");
    command_run("DMUTEX_URL=redis://h exec %s -q --config %s --dry-run true", dmutex_run, path);
    assert_string_equal(ran.errors, "");
    path = write_file("warn.conf", 0644, "[lock a]\nMatch=shm:/ring+0x40\nSharedState=yes\n");
    command_run("DMUTEX_URL=redis://h exec %s --config %s --dry-run true", dmutex_run, path);
    assert_string_equal(ran.errors, "");
}

/* On one host the kernel keeps locks of flock() and of fcntl() apart: --check says so, and a job of cron is silent. */
static void test_config_warns_when_one_name_has_both_kinds_of_file_locks(void **state)
{
    const char *path =
        write_file("kinds.conf", 0644, "[lock cron/%%b]\nMatch=flock:/run/x/*.lock;fcntl:/run/x/*.lock\n");

    (void)state;
    command_run("DMUTEX_URL=unix:///nowhere exec %s --config %s --check", dmutex_run, path);
    assert_errors("[lock cron/%b] Match: cron/%b: on one host, flock() and fcntl() locks of one file do not exclude");
    command_run("DMUTEX_URL=unix:///nowhere exec %s --config %s --dry-run true", dmutex_run, path);
    assert_string_equal(ran.errors, "");
    path = write_file("kinds.conf", 0644, "[lock a]\nMatch=flock:/run/x\n[lock b]\nMatch=fcntl:/run/x\n");
    command_run("DMUTEX_URL=unix:///nowhere exec %s --config %s --check", dmutex_run, path);
    assert_null(strstr(ran.errors, "one host"));
}

/* An object's first name counts; a warning reports a second name for the same programs. */
static void test_config_warns_when_a_rule_is_there_twice(void **state)
{
    const char *path = write_file("twice.conf", 0644,
                                  "[lock a]\nMatch=flock:/x\n[lock b]\nMatch=flock:/x\n"
                                  "[lock c]\nMatch=flock:/y\nProgram=p\n[lock d]\nMatch=flock:/y\nProgram=q\n");

    (void)state;
    command_run("DMUTEX_URL=redis://h exec %s --config %s --dry-run true", dmutex_run, path);
    assert_status(0);
    assert_errors("[lock b] Match: flock:/x is \"a\" already");
    assert_null(strstr(ran.errors, "flock:/y"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_config_is_of_the_nearest_place_when_there_are_more),
        cmocka_unit_test(test_config_of_the_system_is_in_order_when_it_has_a_directory),
        cmocka_unit_test(test_config_is_refused_when_the_named_file_is_missing),
        cmocka_unit_test(test_config_is_refused_when_it_is_a_link_to_nothing),
        cmocka_unit_test(test_config_is_read_when_its_size_is_not_known),
        cmocka_unit_test(test_config_is_refused_when_it_cannot_be_looked_at),
        cmocka_unit_test(test_config_is_refused_when_others_can_write_it),
        cmocka_unit_test(test_config_is_refused_when_others_can_change_the_way_to_it),
        cmocka_unit_test(test_config_is_refused_when_it_is_another_users),
        cmocka_unit_test(test_config_of_root_is_read_when_root_has_no_number),
        cmocka_unit_test(test_config_is_compiled_when_it_is_valid),
        cmocka_unit_test(test_config_keeps_ondown_apart_when_kinds_differ),
        cmocka_unit_test(test_config_defaults_hold_when_a_lock_says_nothing),
        cmocka_unit_test(test_config_names_conditions_apart_when_there_are_more),
        cmocka_unit_test(test_config_escapes_when_a_byte_means_something),
        cmocka_unit_test(test_config_files_are_one_when_there_are_more),
        cmocka_unit_test(test_config_resolves_links_when_files_are_named),
        cmocka_unit_test(test_config_is_refused_with_a_sentence_when_bad),
        cmocka_unit_test(test_config_is_refused_when_a_name_is_too_long),
        cmocka_unit_test(test_config_is_refused_when_it_is_no_text),
        cmocka_unit_test(test_map_is_refused_with_a_sentence_when_bad),
        cmocka_unit_test(test_config_warns_when_memory_is_not_shared),
        cmocka_unit_test(test_config_warns_when_one_name_has_both_kinds_of_file_locks),
        cmocka_unit_test(test_config_warns_when_a_rule_is_there_twice),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, run_setup, folder_teardown);
}
