/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A server that never stops talking: an endless reply, endless messages. The client's memory stays bounded, and its own
 * times are kept: a loss is reported during the flood.
 */
#include <stdlib.h>
#include <string.h>

#include "../lib/talker.h"
#include "../lib/testlib.h"

#define LEASE 1000
#define FLOOD_BYTES (16 * 1024 * 1024) /* of ":1": some hundred MiB where all is kept */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define GROWTH_MAX_KIB (24 * 1024) /* with the sanitizer's own */
#else
#define GROWTH_MAX_KIB (2 * 1024)
#endif

/* Begins a reply that is whole after 5000 arrays of 1000 numbers, 20 MB: later than the flood ends. */
#define NESTED "*1000\r\n*1000\r\n*1000\r\n*1000\r\n*1000\r\n"
#define MESSAGE "*3\r\n$7\r\nmessage\r\n$5\r\ninbox\r\n$6\r\nask 99\r\n"

/* ---- the server -------------------------------------------------------------------------- */

enum flood {
    FLOOD_GREETING,
    FLOOD_SCRIPT,
    FLOOD_INBOX_REPLY,
    FLOOD_MESSAGES,
    FLOOD_MAP_OF_NUMBERS,
    FLOOD_MAP_OF_HOSTS
};

static struct {
    enum flood kind;
    bool has_map;     /* of a Cluster */
    long flooded;     /* bytes that were sent beyond measure */
    int floods_ended; /* by the client */
} fake;

#define get(field) __atomic_load_n(&fake.field, __ATOMIC_ACQUIRE)

/* Sends `begin` once, then `many` times the drop after the head, again and again until the client closes. */
static bool flood(struct guest *guest, const char *begin, const char *head, const char *drop, int many)
{
    char bytes[64 * 1024];
    size_t used = (size_t)snprintf(bytes, sizeof bytes, "%s", head);
    bool is_open = talker_say_text(guest, begin);

    for (int i = 0; i < many; i++)
        used += (size_t)snprintf(bytes + used, sizeof bytes - used, "%s", drop);
    while (is_open && !talker_is_over()) {
        is_open = guest->say(guest, bytes, used);
        __atomic_add_fetch(&fake.flooded, (long)used, __ATOMIC_ACQ_REL);
    }
    __atomic_add_fetch(&fake.floods_ended, 1, __ATOMIC_ACQ_REL);
    return false;
}

static bool flood_reply(struct guest *guest)
{
    return flood(guest, NESTED, "*1000\r\n", ":1\r\n", 1000);
}

/* As many elements as a map may have, and the end does not come. */
static bool flood_numbers(struct guest *guest)
{
    return flood(guest, "*16384\r\n", "*60\r\n", ":1\r\n", 60);
}

/* A map that is correct except for its number of hosts, and starts again and again. */
static bool flood_hosts(struct guest *guest)
{
    char range[400];

    for (int slot = 0; !talker_is_over(); slot = (slot + 1) % 16384) {
        size_t length = (size_t)snprintf(range, sizeof range, "%s*3\r\n:%d\r\n:%d\r\n*2\r\n$255\r\n%0255d\r\n:1\r\n",
                                         slot ? "" : "*16384\r\n", slot, slot, slot);

        if (!guest->say(guest, range, length))
            break;
        __atomic_add_fetch(&fake.flooded, (long)length, __ATOMIC_ACQ_REL);
    }
    __atomic_add_fetch(&fake.floods_ended, 1, __ATOMIC_ACQ_REL);
    return false;
}

static bool flood_map(struct guest *guest)
{
    return fake.kind == FLOOD_MAP_OF_NUMBERS ? flood_numbers(guest) : flood_hosts(guest);
}

/* The word at which the flood begins; a script is another one than the first about "held". */
static bool is_time(const redisReply *command, const char *answer)
{
    switch (fake.kind) {
    case FLOOD_GREETING:
        return talker_is(command, "ROLE");
    case FLOOD_SCRIPT:
        return talker_is_script(command) && answer && !strstr(answer, "owned");
    case FLOOD_INBOX_REPLY:
    case FLOOD_MESSAGES:
        return talker_is(command, "SUBSCRIBE");
    case FLOOD_MAP_OF_NUMBERS:
    case FLOOD_MAP_OF_HOSTS:
        return talker_is(command, "CLUSTER");
    }
    return false;
}

static bool serve(struct guest *guest, const redisReply *command)
{
    const char *answer = talker_answer(guest, command);
    bool is_inbox = talker_is(command, "SUBSCRIBE");

    if (fake.has_map && talker_is(command, "INFO"))
        return talker_say_text(guest, "$79\r\n# Server\r\nredis_mode:cluster\r\n"
                                      "run_id:0123456789abcdef0123456789abcdef01234567\r\n\r\n");
    if (!is_time(command, answer))
        return answer && talker_say_text(guest, answer);
    if (is_inbox && !talker_say_text(guest, answer))
        return false;
    if (fake.kind == FLOOD_MESSAGES)
        return flood(guest, "", "", MESSAGE, 1000);
    return fake.has_map ? flood_map(guest) : flood_reply(guest);
}

static void receive(struct guest *guest)
{
    talker_converse(guest, serve);
}

static struct actor *begin_flood(enum flood kind)
{
    char url[120];

    memset(&fake, 0, sizeof fake);
    fake.kind = kind;
    fake.has_map = kind == FLOOD_MAP_OF_NUMBERS || kind == FLOOD_MAP_OF_HOSTS;
    snprintf(url, sizeof url, "%s://127.0.0.1:%d?grace=off&command_timeout=%d&connect_timeout=300",
             fake.has_map ? "redis+cluster" : "redis", talker_begin(receive), fake.has_map ? 2000 : 300);
    return actor_start_at(url);
}

static void end_flood(struct actor *a)
{
    actor_kill(a);
    actor_end(a);
    talker_end();
}

/* ---- the client --------------------------------------------------------------------------- */

/* The most memory so far, without mapped files: each new release of a library has more pages that are read in. */
static long peak_kib(struct actor *a)
{
    long kib = proc_kib(actor_pid(a), "VmHWM") - proc_kib(actor_pid(a), "RssFile");

    assert_true(kib > 0);
    return kib;
}

/* The flood was given up often, or went on for long: the client has not kept the flood. */
static void check_growth(struct actor *a, long before_kib)
{
    wait_until(get(floods_ended) >= 3 || get(flooded) > FLOOD_BYTES);
    if (peak_kib(a) - before_kib > GROWTH_MAX_KIB)
        fail_msg("grew by %ld KiB by %ld KiB of a flood", peak_kib(a) - before_kib, get(flooded) / 1024);
}

/* A reply that never ends is given up, in the greeting as later; so is the map of a Cluster, which may be long. */
static void test_memory_stays_bounded_when_a_reply_never_ends(void **state)
{
    static const enum flood floods[] = { FLOOD_GREETING, FLOOD_SCRIPT, FLOOD_MAP_OF_NUMBERS, FLOOD_MAP_OF_HOSTS };

    (void)state;
    for (size_t i = 0; i < sizeof floods / sizeof floods[0]; i++) {
        struct actor *a = begin_flood(floods[i]);
        long before_kib = peak_kib(a);

        actor_send(a, "lock flood/x");
        check_growth(a, before_kib);
        assert_true(actor_is_silent(a));
        end_flood(a);
    }
}

/* Holds one mutex, waits for another, so that the inbox is subscribed. */
static long hold_and_wait(struct actor *a)
{
    long before_kib = peak_kib(a);

    actor_do(a, "0", "init flood/held lease=%d", LEASE);
    actor_do(a, "0", "lock flood/held");
    actor_do(a, "0", "start lock flood/other");
    return before_kib;
}

/* The same on the inbox, of one message that never ends, and of messages that are whole. */
static void test_memory_stays_bounded_when_the_inbox_is_flooded(void **state)
{
    static const enum flood floods[] = { FLOOD_INBOX_REPLY, FLOOD_MESSAGES };

    (void)state;
    for (size_t i = 0; i < sizeof floods / sizeof floods[0]; i++) {
        struct actor *a = begin_flood(floods[i]);

        check_growth(a, hold_and_wait(a));
        end_flood(a);
    }
}

/* Renewals are not answered and the inbox is flooded: the loss is told while the flood goes on. */
static void test_a_loss_is_reported_in_time_when_the_inbox_is_flooded(void **state)
{
    struct actor *a = begin_flood(FLOOD_MESSAGES);
    const char *said;

    (void)state;
    hold_and_wait(a);
    promise_within(LEASE + 4000);
    wait_until(get(flooded) > 0);
    do {
        wait_nap();
        actor_send(a, "lost");
        said = actor_answer(a);
    } while (strcmp(said, "0 0") == 0);
    assert_kept();
    assert_int_equal(get(floods_ended), 0);
    assert_int_equal(strtol(said, NULL, 10), 1);
    end_flood(a);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_stays_bounded_when_a_reply_never_ends),
        cmocka_unit_test(test_memory_stays_bounded_when_the_inbox_is_flooded),
        cmocka_unit_test(test_a_loss_is_reported_in_time_when_the_inbox_is_flooded),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    test_tell_asan("quarantine_size_mb=1"); /* freed memory that the sanitizer keeps is no growth of the client's */
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}
