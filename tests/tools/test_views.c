/* SPDX-License-Identifier: BSD-2-Clause */
/* dmutex show, list, token and wait: text for people, JSON, and the rights on the server. */
#include "tool.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* "program (process PID)" of an actor. */
static const char *as_shown(struct actor *actor)
{
    static char text[80];

    snprintf(text, sizeof text, "test_views (process %d) on ", (int)actor_pid(actor));
    return text;
}

/* The current time, as JSON has it. */
static void write_now(char ret_text[40])
{
    struct timespec now;
    struct tm parts;
    size_t length;

    clock_gettime(CLOCK_REALTIME, &now);
    length = strftime(ret_text, 40, "%Y-%m-%dT%H:%M:%S", gmtime_r(&now.tv_sec, &parts));
    snprintf(ret_text + length, 40 - length, ".%03ldZ\n", now.tv_nsec / 1000000);
}

/* ---- show -------------------------------------------------------------------------------- */

static void test_show_names_holder_and_queue_when_a_lock_is_held(void **state)
{
    struct actor *holder = actor_start_holder(the_server, "t/shown", ""), *one = actor_start(the_server),
                 *two = actor_start(the_server);
    char first[120], token[80];
    dmutex_t mutex;

    (void)state;
    assert_result(dmutex_init_np(&mutex, "t/shown", NULL), 0);
    actor_send(one, "lock t/shown");
    wait_until(waiters_of(&mutex) == 1);
    actor_send(two, "lock t/shown");
    wait_until(waiters_of(&mutex) == 2);
    snprintf(token, sizeof token, "  token     %lld\n", actor_value(holder, "token t/shown"));
    command_run("exec $dmutex show t/shown");
    assert_status(0);
    assert_output("  held by   test_views (process ");
    assert_output(as_shown(holder));
    assert_output(token);
    assert_output("  waiting   2\n");
    snprintf(first, sizeof first, "        1   %s", as_shown(one));
    assert_output(first);
    snprintf(first, sizeof first, "        2   %s", as_shown(two));
    assert_output(first);
    command_run("exec $dmutex show --json t/shown");
    assert_status(0);
    tool_check_json();
    assert_output("\"locked\":true");
    assert_output("\"lease_ms\":10000");
    snprintf(first, sizeof first, "\"queue\":[{\"program\":\"test_views\",\"pid\":%d,", (int)actor_pid(one));
    assert_output(first);
    actor_do(holder, "0", "unlock t/shown");
    actor_expect(one, "0");
    actor_do(one, "0", "unlock t/shown");
    actor_expect(two, "0");
    actor_end(two);
    actor_end(one);
    actor_end(holder);
}

/* The lease is that of the holder, and the program is the command. */
static void test_show_names_the_command_when_run_holds_the_lock(void **state)
{
    pid_t pid = tool_start("exec $dmutex run --lease 60000 t/job -- sh -c 'echo >$F/begun; read go <$F/go'");

    (void)state;
    wait_until(tool_has("begun"));
    command_run("exec $dmutex show t/job");
    assert_output("  held by   sh (process ");
    assert_output("  lease     1 min 0 s, ");
    tool_go();
    assert_int_equal(tool_await(pid), 0);
}

static void test_show_says_how_a_hold_ended_when_nobody_holds(void **state)
{
    struct actor *holder = actor_start(the_server);

    (void)state;
    command_run("exec $dmutex show t/never");
    assert_status(0);
    assert_string_equal(ran.output, "t/never\n  free\n  waiting   0\n");
    actor_do(holder, "0", "init t/dead lease=200");
    actor_do(holder, "0", "lock t/dead");
    actor_kill(holder);
    actor_end(holder);
    wait_until(!tool_is_held("t/dead"));
    command_run("exec $dmutex show t/dead");
    assert_output("  free\n");
    assert_output("  health    not released: a holder died, or the lock was broken; ");
    command_run("exec $dmutex show --json t/dead");
    tool_check_json();
    assert_output("\"holder\":null");
    assert_output("\"health\":\"dead\"");
}

/* ---- show: the last holder --------------------------------------------------------------- */

/* Asserts that this process was the last holder, and how the hold ended: `sentence` for people, `word` in JSON. */
static void assert_last(const char *name, pid_t pid, const char *sentence, const char *word)
{
    char line[200];

    command_run("exec $dmutex show %s", name);
    assert_status(0);
    snprintf(line, sizeof line, "\n  free\n  last      test_views (process %d) on ", (int)pid);
    assert_output(line);
    snprintf(line, sizeof line, "\n  end       %s\n", sentence);
    assert_output(line);
    command_run("exec $dmutex show --json %s", name);
    assert_status(0);
    tool_check_json();
    snprintf(line, sizeof line, "\"last_holder\":{\"program\":\"test_views\",\"pid\":%d,\"host\":", (int)pid);
    assert_output(line);
    snprintf(line, sizeof line, ",\"end\":\"%s\"}", word);
    assert_output(line);
}

#define NOT_RELEASED "not released: the holder died, stopped or was cut off"

static void test_show_names_the_last_holder_when_it_has_unlocked(void **state)
{
    struct actor *last = actor_start(the_server);
    char before[40], after[40], line[100];
    pid_t pid = actor_pid(last);

    (void)state;
    write_now(before);
    actor_do(last, "0", "lock tt/x");
    command_run("exec $dmutex show --json tt/x");
    assert_output("\"last_holder\":null");
    actor_do(last, "0", "unlock tt/x");
    write_now(after);
    assert_last("tt/x", pid, "unlocked", "unlocked");
    snprintf(line, sizeof line, "\"thread\":%d,\"since\":\"", (int)pid); /* its first thread */
    assert_output(line);
    command_run("$dmutex show --json tt/x | sed 's/.*\"since\":\"//; s/\".*//'");
    assert_true(strcmp(before, ran.output) <= 0 && strcmp(ran.output, after) <= 0);
    command_run("$dmutex show --json tt/x | sed 's/.*\"until\":\"//; s/\".*//'");
    assert_true(strcmp(before, ran.output) <= 0 && strcmp(ran.output, after) <= 0);
    command_run("exec $dmutex list -a 'tt/*'");
    assert_output("tt/x  (free)");
    actor_end(last);
    assert_last("tt/x", pid, "unlocked", "unlocked");
}

/* The hold ended with its lease, even one that was renewed, and every look shows the same end. */
static void test_show_names_the_last_holder_when_it_was_killed(void **state)
{
    struct actor *dead = actor_start(the_server);
    pid_t pid = actor_pid(dead);
    int held_ms[2];

    (void)state;
    actor_do(dead, "0", "init tt/dead lease=2000");
    actor_do(dead, "0", "lock tt/dead");
    wait_until(side_int(the_server->side, "PTTL dmutex:{tt}:lock:dead") < 1500);
    wait_until(side_int(the_server->side, "PTTL dmutex:{tt}:lock:dead") > 1500); /* renewed */
    actor_kill(dead);
    actor_end(dead);
    wait_until(!tool_is_held("tt/dead"));
    for (int i = 0; i < 2; i++) {
        assert_last("tt/dead", pid, NOT_RELEASED, "died");
        command_run("$dmutex show --json tt/dead | sed 's/.*\"held_ms\"://; s/[^0-9].*//'");
        held_ms[i] = atoi(ran.output);
        wait_until(side_int(the_server->side, "PTTL dmutex:{tt}:state:dead") < 7 * 24 * 3600000 - 3000);
    }
    assert_true(held_ms[0] > 2000);
    assert_within(held_ms[1], held_ms[0] - 100, held_ms[0] + 100); /* rounded to ms several times */
}

static void test_show_names_the_last_holder_when_its_lock_was_broken(void **state)
{
    struct actor *broken = actor_start(the_server);
    pid_t pid = actor_pid(broken);

    (void)state;
    actor_do(broken, "0", "lock tt/broken");
    command_run("exec $dmutex break -y tt/broken");
    assert_status(0);
    assert_last("tt/broken", pid, "broken by force", "broken");
    actor_end(broken);
}

static void test_show_names_the_last_holder_when_a_mutex_is_not_recoverable(void **state)
{
    struct actor *dead = actor_start(the_server), *last = actor_start(the_server);
    pid_t pid_of_dead = actor_pid(dead), pid_of_last = actor_pid(last);

    (void)state;
    actor_do(dead, "0", "init tt/last robust");
    actor_do(dead, "0", "lock tt/last");
    actor_end(dead); /* exit() reports the death */
    assert_last("tt/last", pid_of_dead, NOT_RELEASED, "died");
    actor_do(last, "0", "init tt/last robust");
    actor_do(last, "EOWNERDEAD", "lock tt/last");
    actor_do(last, "0", "unlock tt/last");
    assert_last("tt/last", pid_of_last, "unlocked after a death without making the data consistent", "notrecoverable");
    actor_end(last);
}

/* A handoff leaves no record: the last holder is the one with no successor.  A wait gives the mutex back. */
static void test_show_names_the_last_holder_when_the_lock_was_handed_on(void **state)
{
    struct actor *first = actor_start_holder(the_server, "tt/on", ""), *last = actor_start(the_server);
    dmutex_t mutex;
    pid_t pid = actor_pid(last);

    (void)state;
    assert_result(dmutex_init_np(&mutex, "tt/on", NULL), 0);
    actor_send(last, "lock tt/on");
    wait_until(waiters_of(&mutex) == 1);
    actor_do(first, "0", "unlock tt/on");
    actor_expect(last, "0");
    actor_send(last, "wait tt/filled tt/on");
    wait_until(side_int(the_server->side, "EXISTS dmutex:{tt}:cond:filled") == 1);
    assert_last("tt/on", pid, "unlocked", "unlocked");
    actor_kill(last);
    actor_end(last);
    actor_end(first);
}

static void test_show_lists_conditions_when_some_wait_there(void **state)
{
    struct actor *waiter = actor_start(the_server);
    dmutex_t mutex;

    (void)state;
    assert_result(dmutex_init_np(&mutex, "tc/shown", NULL), 0);
    actor_do(waiter, "0", "lock tc/shown");
    actor_send(waiter, "wait tc/filled tc/shown");
    wait_until(side_int(the_server->side, "EXISTS dmutex:{tc}:cond:filled") == 1);
    command_run("exec $dmutex show tc/shown");
    assert_status(0);
    assert_output("  condition tc/filled: 1 waiting\n");
    command_run("exec $dmutex show --json tc/shown");
    tool_check_json();
    assert_output("\"conditions\":[{\"name\":\"tc/filled\"");
    command_run("exec $dmutex list 'tc/*'");
    assert_output("tc/filled  (condition)");
    command_run("exec $dmutex show tc/other");
    assert_null(strstr(ran.output, "condition"));
    actor_kill(waiter);
    actor_end(waiter);
}

/* A script can compare the times in two outputs: is it the same hold? */
static void test_json_shows_the_same_time_when_a_hold_is_looked_at_again(void **state)
{
    char before[40], after[40];
    struct actor *holder;

    (void)state;
    write_now(before);
    holder = actor_start_holder(the_server, "t/since", "");
    write_now(after);
    command_run("for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do $dmutex show --json t/since; done | "
                "sed 's/.*\"since\":\"//; s/\".*//' | sort -u");
    assert_int_equal(strlen(ran.output), strlen(before));
    assert_true(strcmp(before, ran.output) <= 0 && strcmp(ran.output, after) <= 0);
    actor_end(holder);
}

/*
 * The name of a condition is not a free mutex, in `list` either.  A mutex of the same name is shown next to the
 * condition.
 */
static void test_show_names_the_waiters_when_the_name_is_of_a_condition(void **state)
{
    struct actor *waiter = actor_start(the_server), *holder;
    char line[200];

    (void)state;
    actor_do(waiter, "0", "lock tn/data");
    actor_send(waiter, "wait tn/filled tn/data");
    wait_until(side_int(the_server->side, "EXISTS dmutex:{tn}:cond:filled") == 1);
    command_run("exec $dmutex show tn/filled");
    assert_status(0);
    snprintf(line, sizeof line, "tn/filled\n  condition of tn/data, 1 waiting\n        1   %s", as_shown(waiter));
    assert_int_equal(strncmp(ran.output, line, strlen(line)), 0);
    assert_null(strstr(ran.output, "free"));
    command_run("exec $dmutex show --json tn/filled");
    tool_check_json();
    assert_output("\"kind\":\"condition\",\"anonymous\":false,\"mutex\":\"tn/data\",\"waiters\":1,\"queue\":[{");
    holder = actor_start_holder(the_server, "tn/filled", "");
    command_run("exec $dmutex show tn/filled");
    assert_output(as_shown(holder));
    assert_output("  condition of tn/data, 1 waiting\n");
    command_run("exec $dmutex show --json tn/filled");
    tool_check_json();
    assert_output("\"kind\":\"mutex\"");
    assert_output("\"conditions\":[],\"condition\":{\"name\":\"tn/filled\"");
    actor_end(holder);
    actor_kill(waiter);
    actor_end(waiter);
}

/* A process that keeps its lease is the holder, even though none of its threads may be inside. */
static void test_show_says_kept_when_the_process_keeps_the_lease(void **state)
{
    struct actor *keeper = actor_start(the_server);

    (void)state;
    actor_do(keeper, "0", "init t/warm lease=60000 linger=60000");
    do {
        actor_do(keeper, "0", "lock t/warm");
        actor_do(keeper, "0", "unlock t/warm");
    } while (!tool_is_held("t/warm")); /* until the process has its inbox, and keeps the lease */
    wait_until(
        (command_run("exec $dmutex show t/warm"), strstr(ran.output, "  kept      perhaps no thread is inside")));
    actor_end(keeper);
}

/* ---- list -------------------------------------------------------------------------------- */

static void test_list_shows_what_is_held_when_asked(void **state)
{
    struct actor *a = actor_start_holder(the_server, "tl/a", ""), *b = actor_start_holder(the_server, "tl/b", "");

    (void)state;
    actor_do(b, "0", "lock tl/c");
    actor_do(b, "0", "unlock tl/c");
    command_run("exec $dmutex list 'tl/*'");
    assert_status(0);
    assert_output("NAME  HELD BY");
    assert_output("tl/a  test_views (process ");
    assert_output("tl/b  test_views (process ");
    assert_null(strstr(ran.output, "tl/c"));
    command_run("exec $dmutex list --all 'tl/*'");
    assert_output("tl/c  (free)");
    command_run("exec $dmutex list --json 'tl/a'");
    tool_check_json();
    assert_output("[{\"name\":\"tl/a\",\"encoded\":\"tl/a\",\"kind\":\"mutex\"");
    command_run("exec $dmutex list --json 'tl/nobody*'");
    assert_string_equal(ran.output, "[]\n");
    actor_end(a);
    actor_end(b);
}

/* The table, like `show`, has text for people; only --json has the words for programs. */
static void test_list_says_why_a_free_lock_is_listed(void **state)
{
    struct actor *dead = actor_start(the_server), *last = actor_start(the_server);

    (void)state;
    actor_do(dead, "0", "init tr/dead robust lease=200");
    actor_do(dead, "0", "init tr/last robust lease=200");
    actor_do(dead, "0", "lock tr/dead");
    actor_do(dead, "0", "lock tr/last");
    actor_kill(dead);
    actor_end(dead);
    actor_do(last, "0", "init tr/last robust lease=200");
    actor_do(last, "EOWNERDEAD", "lock tr/last");
    actor_do(last, "0", "unlock tr/last");
    wait_until(!tool_is_held("tr/dead"));
    command_run("exec $dmutex list 'tr/*'");
    assert_null(strstr(ran.output, "tr/dead"));
    assert_output("\ntr/last  (free, not recoverable) ");
    command_run("exec $dmutex list -a 'tr/*'");
    assert_output("\ntr/dead  (free, not released) ");
    assert_output("\ntr/last  (free, not recoverable) ");
    command_run("exec $dmutex list -a --json 'tr/*'");
    tool_check_json();
    assert_output("\"health\":\"dead\"");
    assert_output("\"health\":\"notrecoverable\"");
    actor_end(last);
}

/* SCAN has a cursor, and the script takes a hundred names at once.  Still, each name comes once. */
static void test_list_shows_each_name_once_when_there_are_thousands(void **state)
{
    enum { NAMES = 2500 };
    dmutex_t mutex;
    char name[40];

    (void)state;
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "tm/%d", i);
        assert_result(dmutex_init_np(&mutex, name, NULL), 0);
        assert_result(dmutex_lock(&mutex), 0);
        assert_result(dmutex_unlock(&mutex), 0);
    }
    command_run("$dmutex list --all 'tm/*' | tail -n +2 | cut -d' ' -f1 >$F/names; wc -l <$F/names; "
                "sort -u $F/names | wc -l");
    assert_status(0);
    assert_string_equal(ran.output, "2500\n2500\n");
    side_text(the_server->side, "EVAL %s 0",
              "for _, key in ipairs(redis.call('KEYS', 'dmutex:{tm}:*')) do redis.call('DEL', key) end return 'done'");
}

static void lock_once(const char *name)
{
    dmutex_t mutex;

    assert_result(dmutex_init_np(&mutex, name, NULL), 0);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
}

/* Names with every possible byte: the JSON is well-formed, and "encoded" loses nothing. */
static void test_json_is_well_formed_when_names_have_any_byte(void **state)
{
    char name[] = "tb/x?y";

    (void)state;
    for (int byte = 1; byte < 256; byte++) {
        name[4] = (char)byte;
        lock_once(name);
    }
    lock_once("tb/\xed\xa0\x80 \xf4\x90\x80\x80 \xc0\x80 \xe2\x80\xae \xf0\x9f\x94\x92 \xc2\x85");
    command_run("exec $dmutex list --all --json 'tb/*'");
    assert_status(0);
    if (!tool_check_json())
        return;
    command_run("python3 -c 'import json,sys,urllib.parse as u; d=json.load(open(sys.argv[1],encoding=\"utf-8\")); "
                "n={u.unquote_to_bytes(e[\"encoded\"]) for e in d}; "
                "print(len(d), all(b\"tb/x\"+bytes([i])+b\"y\" in n for i in range(1,256)))' $F/json");
    assert_status(0);
    assert_string_equal(ran.output, "256 True\n");
}

/* No byte of a name, or of another process's label, reaches the terminal if it would obey it. */
static void test_subcommands_are_clean_when_names_and_labels_have_controls(void **state)
{
    (void)state;
    side_text(the_server->side, "HSET dmutex:{tw}:lock:x h 1");
    side_text(the_server->side, "HSET dmutex:{tw}:state:x token 5 hold %s",
              "00112233445566778899aabbccddeeff:1:1 10000 4711 ho\x1b]0;st\" \xff\\pro");
    lock_once("tw/\x1b[31m\n");
    lock_once("tw/a");
    lock_once("tw/a ");
    lock_once("tw/\u200b"
              "a");
    command_run("exec $dmutex list --all 'tw/*'");
    assert_status(0);
    assert_output("tw/\\x1b[31m\\x0a ");
    assert_output("\ntw/a  ");
    assert_output("\ntw/a\\x20  ");
    assert_output("\ntw/\\xe2\\x80\\x8ba  ");
    assert_output("\\xff\\x5cpro (process 4711) on ho\\x1b]0;st\"");
    assert_null(strchr(ran.output, '\x1b'));
    command_run("exec $dmutex show tw/x");
    assert_null(strchr(ran.output, '\x1b'));
    command_run("exec $dmutex show --json tw/x");
    tool_check_json();
    assert_output("\"host\":\"ho\\u001b]0;st\\\"\"");
    side_text(the_server->side, "DEL dmutex:{tw}:lock:x");
    side_text(the_server->side, "HSET dmutex:{tw}:state:x hold %s", "-0 5 77 4711 ho\x1b]0;st\" \xff\\pro\x1b[2J");
    command_run("exec $dmutex show tw/x");
    assert_output("  last      \\xff\\x5cpro\\x1b[2J (process 4711) on ho\\x1b]0;st\", thread 77\n");
    assert_null(strchr(ran.output, '\x1b'));
    command_run("exec $dmutex show --json tw/x");
    tool_check_json();
    assert_output("\"host\":\"ho\\u001b]0;st\\\"\"");
    side_text(the_server->side, "HSET dmutex:{tw}:state:x hold %s", "-7 5 77 4711 host program");
    command_run("exec $dmutex show tw/x");
    assert_null(strstr(ran.output, "last"));
    side_text(the_server->side, "DEL dmutex:{tw}:state:x");
}

/* Other programs' keys that look similar are passed over; keys in the way of a name are reported. */
static void test_list_reports_a_fault_when_a_key_is_not_ours(void **state)
{
    (void)state;
    side_text(the_server->side, "SET dmutex:{tf}:state:a 1");
    side_text(the_server->side, "HSET dmutex:{tf}:state:b token nonsense");
    side_text(the_server->side, "HSET dmutex:{tf}:state:%%zz token 1");
    side_text(the_server->side, "HSET dmutex:{tf}:state:%%61 token 1");
    side_text(the_server->side, "HSET dmutex:{tf:state:c token 1");
    command_run("$dmutex list 'tf*' | tail -n +2 | cut -d' ' -f1");
    assert_string_equal(ran.output, "tf/a\ntf/b\n");
    command_run("exec $dmutex list --json 'tf*'");
    tool_check_json();
    assert_output("\"fault\":\"WRONGTYPE");
    assert_output("\"fault\":\"DMSTATE");
    command_run("exec $dmutex show tf/b");
    assert_status(69);
    assert_errors("that libdmutex did not write");
    side_text(the_server->side, "DEL dmutex:{tf}:state:a dmutex:{tf}:state:b dmutex:{tf}:state:%%zz "
                                "dmutex:{tf}:state:%%61 dmutex:{tf:state:c");
}

/* ---- token, wait ------------------------------------------------------------------------- */

static void test_token_prints_the_newest_token_when_asked(void **state)
{
    struct actor *holder = actor_start_holder(the_server, "t/token", "");
    char wanted[60];

    (void)state;
    snprintf(wanted, sizeof wanted, "%lld\n", actor_value(holder, "token t/token"));
    command_run("exec $dmutex token t/token");
    assert_status(0);
    assert_string_equal(ran.output, wanted);
    actor_do(holder, "0", "unlock t/token");
    command_run("exec $dmutex token t/token");
    assert_string_equal(ran.output, wanted);
    command_run("exec $dmutex token t/unknown");
    assert_string_equal(ran.output, "0\n");
    command_run("exec $dmutex token --json t/token");
    tool_check_json();
    actor_end(holder);
}

static void test_wait_returns_when_the_present_hold_ends(void **state)
{
    struct actor *holder = actor_start_holder(the_server, "t/wait", ""), *next = actor_start(the_server);
    dmutex_t mutex;
    int64_t asked;
    pid_t pid;

    (void)state;
    command_run("exec $dmutex wait t/nobody");
    assert_status(0);
    command_run("exec $dmutex wait -w 0.05 --json t/wait");
    assert_status(75);
    tool_check_json();
    assert_output("\"ended\":false");
    assert_result(dmutex_init_np(&mutex, "t/wait", NULL), 0);
    actor_send(next, "lock t/wait");
    wait_until(waiters_of(&mutex) == 1);
    asked = side_calls(the_server->side, "evalsha") + side_calls(the_server->side, "eval");
    pid = tool_start("exec $dmutex wait t/wait");
    wait_until(side_calls(the_server->side, "evalsha") + side_calls(the_server->side, "eval") > asked + 4);
    actor_do(holder, "0", "unlock t/wait");
    actor_expect(next, "0");
    assert_int_equal(tool_await(pid), 0);
    actor_do(next, "0", "unlock t/wait");
    actor_end(next);
    actor_end(holder);
}

/* ---- servers ----------------------------------------------------------------------------- */

static const char *const subcommands[] = { "show t/x",     "show --json t/x", "list", "list --json",
                                           "token t/x",    "wait t/x",        "top",  "top --json",
                                           "break -y t/x", "run t/x true" };

static void test_subcommands_say_why_when_the_server_cannot_be_used(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof subcommands / sizeof subcommands[0]; i++) {
        command_run("DMUTEX_URL='unix://'$F'/nobody?connect_timeout=50&command_timeout=50' exec $dmutex %s",
                    subcommands[i]);
        assert_status(69);
        assert_errors("/nobody");
        assert_string_equal(ran.output, "");
        command_run("DMUTEX_URL='unix://app:wrong@%s' exec $dmutex %s", the_server->path, subcommands[i]);
        assert_status(77);
        assert_errors("the password or user is refused");
        command_run("DMUTEX_URL='%s' exec $dmutex %s", tool_user("-eval"), subcommands[i]);
        assert_status(77);
        assert_errors("NOPERM");
        command_run("unset DMUTEX_URL; exec $dmutex %s", subcommands[i]);
        assert_status(78);
    }
    server_stop(the_server);
    command_run("DMUTEX_URL=\"$DMUTEX_URL&connect_timeout=100&command_timeout=100\" exec $dmutex show t/x");
    server_cont(the_server);
    assert_status(69);
}

/* A list, top's too, needs a right that locking does not need.  There is nothing to break, which is status 1. */
static void test_subcommands_need_no_more_than_the_documented_rights_but_list(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof subcommands / sizeof subcommands[0]; i++) {
        bool is_list = strncmp(subcommands[i], "list", 4) == 0 || strncmp(subcommands[i], "top", 3) == 0;
        bool is_break = strncmp(subcommands[i], "break", 5) == 0;

        command_run("DMUTEX_URL='%s' exec $dmutex %s", tool_user(""), subcommands[i]);
        assert_status(is_list ? 77 : is_break ? 1 : 0);
        if (is_list)
            assert_errors("+scan");
        command_run("DMUTEX_URL='%s' exec $dmutex %s", tool_user("+scan"), subcommands[i]);
        assert_status(is_break);
        if (!is_break)
            assert_string_equal(ran.errors, "");
    }
    command_run("DMUTEX_URL='%s' exec $dmutex show t/x", tool_user(""));
    assert_output("conditions are not known");
}

static void test_subcommands_refuse_when_the_usage_is_wrong(void **state)
{
    static const char *const bad[] = { "",         "nonsense",    "show",         "show a b", "show --nonsense a",
                                       "show /x",  "list a b",    "list --x",     "token",    "token -x a",
                                       "wait",     "wait -w x a", "wait -w -1 a", "break",    "break a b",
                                       "help bad", "show ''",     "token a/" };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        command_run("exec $dmutex %s", bad[i]);
        assert_status(64);
        assert_string_equal(ran.output, "");
        assert_string_not_equal(ran.errors, "");
    }
}

static void test_help_lists_all_subcommands_when_asked(void **state)
{
    static const char *const all[] = { "help", "--help", "-h" };
    static const char *const one[] = { "help show", "show --help", "show -h" };

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        command_run("exec $dmutex %s", all[i]);
        assert_status(0);
        assert_output("  show ");
        command_run("exec $dmutex %s", one[i]);
        assert_status(0);
        assert_output("usage: dmutex show [--json] NAME\n");
    }
    command_run("exec $dmutex --version");
    assert_string_equal(ran.output, "dmutex " DMUTEX_VERSION_STRING "\n");
}

/* An empty name is left out of the sentence. */
static void test_an_empty_name_is_left_out_of_the_sentence(void **state)
{
    static const char *const commands[] = { "run '' true", "show ''", "token ''" };

    (void)state;
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        command_run("exec $dmutex %s", commands[i]);
        assert_status(64);
        assert_string_equal(ran.errors, "dmutex: The name is empty: give 1 to 200 bytes\n");
    }
}

/* A script that reads a list must not take half of it for the whole. */
static void test_a_full_disk_is_reported_when_output_is_lost(void **state)
{
    (void)state;
    command_run("exec $dmutex list >/dev/full");
    assert_status(74);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_show_names_holder_and_queue_when_a_lock_is_held),
        cmocka_unit_test(test_show_names_the_command_when_run_holds_the_lock),
        cmocka_unit_test(test_show_says_how_a_hold_ended_when_nobody_holds),
        cmocka_unit_test(test_show_names_the_last_holder_when_it_has_unlocked),
        cmocka_unit_test(test_show_names_the_last_holder_when_it_was_killed),
        cmocka_unit_test(test_show_names_the_last_holder_when_its_lock_was_broken),
        cmocka_unit_test(test_show_names_the_last_holder_when_a_mutex_is_not_recoverable),
        cmocka_unit_test(test_show_names_the_last_holder_when_the_lock_was_handed_on),
        cmocka_unit_test(test_show_lists_conditions_when_some_wait_there),
        cmocka_unit_test(test_json_shows_the_same_time_when_a_hold_is_looked_at_again),
        cmocka_unit_test(test_show_names_the_waiters_when_the_name_is_of_a_condition),
        cmocka_unit_test(test_show_says_kept_when_the_process_keeps_the_lease),
        cmocka_unit_test(test_list_shows_what_is_held_when_asked),
        cmocka_unit_test(test_list_says_why_a_free_lock_is_listed),
        cmocka_unit_test(test_list_shows_each_name_once_when_there_are_thousands),
        cmocka_unit_test(test_json_is_well_formed_when_names_have_any_byte),
        cmocka_unit_test(test_subcommands_are_clean_when_names_and_labels_have_controls),
        cmocka_unit_test(test_list_reports_a_fault_when_a_key_is_not_ours),
        cmocka_unit_test(test_token_prints_the_newest_token_when_asked),
        cmocka_unit_test(test_wait_returns_when_the_present_hold_ends),
        cmocka_unit_test(test_subcommands_say_why_when_the_server_cannot_be_used),
        cmocka_unit_test(test_subcommands_need_no_more_than_the_documented_rights_but_list),
        cmocka_unit_test(test_subcommands_refuse_when_the_usage_is_wrong),
        cmocka_unit_test(test_help_lists_all_subcommands_when_asked),
        cmocka_unit_test(test_an_empty_name_is_left_out_of_the_sentence),
        cmocka_unit_test(test_a_full_disk_is_reported_when_output_is_lost),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, tool_setup, tool_teardown);
}
