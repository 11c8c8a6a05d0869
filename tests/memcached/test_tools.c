/* SPDX-License-Identifier: BSD-2-Clause */
/* dmutex(1) on memcached, and what goes wrong there: each fault has a sentence with what to do. */
#include "../tools/tool.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../lib/folder.h"
#include "../registers/mcserver.h"

static struct mcserver *server;
static char url[128];

static int setup(void **state)
{
    (void)state;
    server = mcserver_start("-M");
    keeper_make_folder(folder, sizeof folder);
    snprintf(url, sizeof url, "%s&grace=off", server->url);
    tool_use(folder, url);
    return 0;
}

static int teardown(void **state)
{
    mcserver_end(server);
    return folder_teardown(state);
}

/* All that needs no list works as on Redis; memcached has none, and list and top say so */
static void test_every_subcommand_works_but_lists(void **state)
{
    struct actor *holder = actor_start_at(url);

    (void)state;
    actor_do(holder, "0", "lock tw/held");
    for (size_t i = 0; i < TOOL_WORDS; i++) {
        const struct tool_subcommand *row = &tool_subcommands[i];
        bool needs_list = !strncmp(row->arguments, "list", 4) || !strncmp(row->arguments, "top", 3);

        command_run("exec $dmutex %s", row->arguments);
        assert_status(needs_list ? 69 : row->status);
        if (needs_list)
            assert_errors("this server cannot list its locks");
        else
            assert_output(row->output);
    }
    actor_do(holder, "EPERM", "unlock tw/held");
    actor_end(holder);
}

/* doctor tells what memcached can lose, and what is wrong with other servers */
static void test_doctor_says_what_holds(void **state)
{
    static const struct {
        const char *options, *words;
        int status;
    } rows[] = {
        { "", "warn  eviction     memcached drops keys when its memory is full, 0 so far", 0 },
        { "-M -C", "fail  cas          memcached has no CAS numbers", 1 },
        { "-M -Y login", "fail  login        memcached wants a login", 77 },
    };

    (void)state;
    command_run("exec $dmutex doctor");
    assert_status(0);
    assert_output("ok    server       memcached 1.");
    assert_output("ok    eviction     memcached evicts nothing (-M)\n");
    assert_output("ok    memory       ");
    assert_output("P0    yes ");
    assert_output("P4    no ");
    command_run("exec $dmutex doctor --json");
    assert_status(0);
    assert_output("\"result\":\"ok\"");
    command_run("DMUTEX_URL='memcached://127.0.0.1:1?lossy=yes' exec $dmutex doctor");
    assert_status(69);
    assert_output("fail  server       memcached cannot be used: ");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mcserver *other = mcserver_start(rows[i].options);

        command_run("DMUTEX_URL='%s' exec $dmutex doctor", other->url);
        assert_status(rows[i].status);
        assert_output(rows[i].words);
        mcserver_end(other);
    }
    command_run("exec $dmutex acl");
    assert_status(78);
    assert_errors("memcached, which has no users");
}

/* Asserts that a lock fails with this status, and that its sentence contains these words. */
static void assert_fails(const char *where, int status, const char *words)
{
    command_run("DMUTEX_URL='%s' exec $dmutex run -w 5 --lease 1000 fault true", where);
    assert_status(status);
    assert_errors(words);
}

/* Without the word lossy nobody keeps locks there; a value that is not ours is refused; nobody answers */
static void test_faults_are_told(void **state)
{
    char plain[64];

    (void)state;
    snprintf(plain, sizeof plain, "memcached://127.0.0.1:%d", server->port);
    assert_fails(plain, 78, "write ?lossy=yes if two owners at a time would do no harm");
    mcserver_ask(server, "ms dmutex:r/n/fault 7\r\nby hand");
    assert_fails(url, 69, "has been changed by hand: delete it if nobody holds the lock");
    assert_fails("memcached://127.0.0.1:1?lossy=yes", 69, "cannot reach memcached at 127.0.0.1:1");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_subcommand_works_but_lists),
        cmocka_unit_test(test_faults_are_told),
        cmocka_unit_test(test_doctor_says_what_holds),
    };

    test_begin(argc, argv);
    if (!mcserver_is_possible())
        return 0;
    return cmocka_run_group_tests(tests, setup, teardown);
}
