/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `local:` on a machine with other users: no other user's server is ever asked. The stranger of these tests runs a
 * server that would grant everything.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "../lib/stranger.h"
#include "../lib/testlib.h"

#define DEFAULT_FOLDER "/tmp/dmutex-61235"

static char folder[32];   /* this test's own; every user may go through it */
static char shared[64];   /* a subfolder, as /tmp is: sticky, and every user may write */
static char *own_program; /* program_path, while another program is run */
static pid_t server;      /* the stranger's; 0: none */

static int begin_test(void **state)
{
    (void)state;
    keeper_make_folder(folder, sizeof folder);
    snprintf(shared, sizeof shared, "%s/tmp", folder);
    assert_return_code(chmod(folder, 0711), errno);
    assert_return_code(mkdir(shared, 0700), errno);
    assert_return_code(chmod(shared, 01777), errno);
    own_program = program_path;
    server = 0;
    return 0;
}

static int end_test(void **state)
{
    char path[128];
    FILE *file;
    int pid = 0;

    (void)state;
    program_path = own_program;
    if (server)
        stranger_end(server);
    snprintf(path, sizeof path, "%s/tmp/own/pid", folder); /* the victim's own, if one was started */
    file = fopen(path, "r");
    if (file && fscanf(file, "%d", &pid) == 1 && pid > 1)
        kill(pid, SIGKILL);
    if (file)
        fclose(file);
    command_run("rm -rf " DEFAULT_FOLDER);
    keeper_remove_folder(folder);
    return 0;
}

static const char *in_shared(const char *name)
{
    static char path[128];

    snprintf(path, sizeof path, "%s/%s", shared, name);
    return path;
}

/*
 * Actors are the victim's from now on, not root's: a copy of this program, which has the library inside, because a
 * folder above the build folder may be closed to other users.
 */
static void be_victim(void)
{
    static char path[64];
    FILE *file;

    command_run("cp '%s' %s/program && chmod 0755 %s/program", own_program, folder, folder);
    assert_status(0);
    snprintf(path, sizeof path, "%s/victim", folder);
    file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\nexec setpriv --reuid=%d --regid=%d --clear-groups %s/program \"$@\"\n", VICTIM, VICTIM,
            folder);
    assert_int_equal(fclose(file), 0);
    assert_return_code(chmod(path, 0755), errno);
    program_path = path;
}

/* With DMUTEX_LOCAL_DIR, or NULL for the default place. */
static struct actor *start(const char *place)
{
    char variable[200];

    snprintf(variable, sizeof variable, "DMUTEX_LOCAL_DIR=%s", place ? place : "");
    return actor_start_with(NULL, variable, NULL);
}

/* Neither trylock nor lock is granted, and the sentence contains these words. */
static void assert_refused(const char *place, const char *words)
{
    static const char *const calls[] = { "trylock", "lock" };
    struct actor *actor = start(place);

    for (size_t i = 0; i < 2; i++) {
        const char *sentence;

        actor_do(actor, "ENOLCK", "%s local/safe", calls[i]);
        actor_send(actor, "strerror");
        sentence = actor_answer(actor);
        if (!strstr(sentence, words) || !strstr(sentence, "DMUTEX_LOCAL_DIR"))
            fail_msg("%s", sentence);
    }
    actor_end(actor);
}

/* ---- the folder -------------------------------------------------------------------------- */

/* The stranger was first: has made the folder, and inside a server that would grant the mutex. */
static void test_no_mutex_is_granted_when_a_stranger_has_made_the_folder(void **state)
{
    (void)state;
    stranger_run(STRANGER, "mkdir -m 0755 %s", in_shared("squatted"));
    server = stranger_serve(STRANGER, in_shared("squatted"));
    assert_refused(in_shared("squatted"), "belongs to another user: 61234");
}

/* The same at the usual place, where nothing is configured at all. */
static void test_no_mutex_is_granted_when_a_stranger_has_made_the_usual_folder(void **state)
{
    (void)state;
    assert_int_equal(access(DEFAULT_FOLDER, F_OK), -1);
    stranger_run(STRANGER, "mkdir -m 0755 " DEFAULT_FOLDER);
    server = stranger_serve(STRANGER, DEFAULT_FOLDER);
    be_victim();
    assert_refused(NULL, DEFAULT_FOLDER " belongs to another user: 61234");
}

/* A link to the stranger's folder; and a link that leads to the victim's own, and may lead elsewhere next. */
static void test_no_mutex_is_granted_when_the_folder_is_a_link(void **state)
{
    (void)state;
    stranger_run(STRANGER, "cd %s && mkdir -m 0755 there && ln -s there link && ln -s own other", shared);
    server = stranger_serve(STRANGER, in_shared("there"));
    assert_refused(in_shared("link"), "is not a folder, but a link or file of user 61234");
    be_victim();
    stranger_run(VICTIM, "mkdir -m 0700 %s", in_shared("own"));
    assert_refused(in_shared("other"), "is not a folder, but a link or file of user 61234");
}

/* A folder in which all may make sockets, though no user may remove another user's. */
static void test_no_mutex_is_granted_when_a_stranger_listens_in_a_sticky_folder(void **state)
{
    (void)state;
    server = stranger_serve(STRANGER, shared);
    assert_refused(shared, "is open to others (chmod it to 0700)");
}

/* The folder is the victim's, but a stranger can put another folder in the same place. */
static void test_no_mutex_is_granted_when_a_stranger_can_replace_the_folder(void **state)
{
    char path[200];

    (void)state;
    be_victim();
    stranger_run(STRANGER, "mkdir -m 0777 %s && chmod 0777 %s", in_shared("wide"), in_shared("wide"));
    stranger_run(VICTIM, "mkdir -m 0700 %s", in_shared("wide/own"));
    snprintf(path, sizeof path, "%s", in_shared("wide/own"));
    assert_refused(path, "/wide belongs to user 61234");
    assert_return_code(chown(in_shared("wide"), VICTIM, VICTIM), errno);
    assert_refused(path, "/wide can be changed by others than its owner, user 61235");
}

/* ---- the listener ------------------------------------------------------------------------ */

/* Root can go into any folder: a server that listens there is not the victim's all the same. */
static void test_no_mutex_is_granted_when_another_user_listens(void **state)
{
    (void)state;
    be_victim();
    stranger_run(VICTIM, "mkdir -m 0700 %s", in_shared("own"));
    server = stranger_serve(0, in_shared("own"));
    assert_refused(in_shared("own"), "is served by another user: 0 (root)");
}

/* The control: one's own folder reached through root's link, as /var/run is, has one's own server. */
static void test_the_mutex_is_granted_when_the_way_is_roots(void **state)
{
    struct actor *actor;
    char path[128];

    (void)state;
    be_victim();
    snprintf(path, sizeof path, "%s/way", folder);
    assert_return_code(symlink("tmp", path), errno);
    snprintf(path, sizeof path, "%s/way/own", folder);
    actor = start(path);
    actor_do(actor, "0", "lock local/safe");
    actor_do(actor, "0", "unlock local/safe");
    actor_end(actor);
}

/* ---- rights ------------------------------------------------------------------------------ */

/*
 * A program that has more rights than the caller: the folder, and server, of the program's user may be right, but the
 * caller chooses the programs started and found.
 */
static void test_no_mutex_is_granted_when_the_program_has_more_rights(void **state)
{
    static char copy[64];
    struct statvfs system;

    (void)state;
    assert_return_code(statvfs(folder, &system), errno);
    if (system.f_flag & ST_NOSUID)
        return; /* there are no such programs here */
    stranger_run(VICTIM, "mkdir -m 0700 " DEFAULT_FOLDER);
    server = stranger_serve(VICTIM, DEFAULT_FOLDER);
    snprintf(copy, sizeof copy, "%s/rights", folder);
    command_run("cp '%s' %s && chown %d %s && chmod 4755 %s", own_program, copy, VICTIM, copy, copy);
    assert_status(0);
    program_path = copy;
    {
        struct actor *actor = start(NULL);

        actor_do(actor, "ENOLCK", "trylock local/safe");
        actor_send(actor, "strerror");
        if (!strstr(actor_answer(actor), "more rights than its caller"))
            fail_msg("no sentence about rights");
        actor_end(actor);
    }
}

#define STRANGER_TEST(test) cmocka_unit_test_setup_teardown(test, begin_test, end_test)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        STRANGER_TEST(test_no_mutex_is_granted_when_a_stranger_has_made_the_folder),
        STRANGER_TEST(test_no_mutex_is_granted_when_a_stranger_has_made_the_usual_folder),
        STRANGER_TEST(test_no_mutex_is_granted_when_the_folder_is_a_link),
        STRANGER_TEST(test_no_mutex_is_granted_when_a_stranger_listens_in_a_sticky_folder),
        STRANGER_TEST(test_no_mutex_is_granted_when_a_stranger_can_replace_the_folder),
        STRANGER_TEST(test_no_mutex_is_granted_when_another_user_listens),
        STRANGER_TEST(test_the_mutex_is_granted_when_the_way_is_roots),
        STRANGER_TEST(test_no_mutex_is_granted_when_the_program_has_more_rights),
    };

    test_begin(argc, argv);
    stranger_require();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
