/* SPDX-License-Identifier: BSD-2-Clause */
#include "driver.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/ident.h"
#include "base/units.h"

/* Only a driver that has lost an answer takes so long. */
#define PATIENCE_NS (60 * DM_NS_PER_S)

#define PEERS 8
#define ANSWERS_MAX 64

/* One answer, read or swap; the bytes are the suite's own. */
struct answer {
    uint64_t ticket;
    int index, count; /* count: how often it came */
    enum dm_reg_outcome outcome;
    bool has_value;
    struct dm_reg_version version;
    uint8_t *value;
    size_t size;
    int64_t age_ms, clock_us;
};

/* A process, as the store sees it. */
struct peer {
    struct dm_reg_driver *driver;
    char inbox[64], identity[DM_REG_IDENTITY_ROOM];
    bool is_ready, is_inbox_open;
    int downs;
    struct answer answers[ANSWERS_MAX];
    int answer_count;
    char *told;
    size_t told_size;
    int told_count;
    char *listed;
    int listed_count, list_answers;
    bool is_last;
    char order[DM_REG_KEY_MAX + 1]; /* the last key of the list */
    bool is_unordered;
};

static const struct driver_bed *bed;
static struct peer peers[PEERS];
static int peer_count;
static uint64_t last_ticket;
static char word[20]; /* with which all keys begin */
static struct dm_reg_writer writer;

/* ---- what the driver calls ---------------------------------------------------------------- */

static void on_ready(void *user, const char *identity)
{
    struct peer *peer = user;

    peer->is_ready = true;
    assert_true(strlen(identity) > 0 && strlen(identity) < DM_REG_IDENTITY_ROOM);
    snprintf(peer->identity, sizeof peer->identity, "%s", identity);
}

static void on_down(void *user, const char *reason, bool is_final)
{
    struct peer *peer = user;

    peer->is_ready = false;
    peer->downs++;
    assert_true(reason && strlen(reason) < DM_REG_REASON_ROOM);
    assert_false(is_final);
}

static void on_reply(void *user, uint64_t ticket, int index, const struct dm_reg_reply *reply)
{
    struct peer *peer = user;
    struct answer *answer = NULL;

    for (int i = 0; i < peer->answer_count; i++) {
        if (peer->answers[i].ticket == ticket && peer->answers[i].index == index)
            answer = &peer->answers[i];
    }
    assert_non_null(answer); /* an answer to nothing */
    answer->count++;
    answer->outcome = reply->outcome;
    answer->has_value = reply->has_value;
    answer->version = reply->version;
    answer->age_ms = reply->age_ms;
    answer->clock_us = reply->clock_us;
    if (reply->has_value && reply->size) {
        free(answer->value);
        answer->value = malloc(reply->size);
        assert_non_null(answer->value);
        memcpy(answer->value, reply->value, reply->size);
    }
    answer->size = reply->has_value ? reply->size : 0;
}

static void on_list(void *user, uint64_t ticket, const char *const *keys, int count, bool is_last, const char *reason)
{
    struct peer *peer = user;

    (void)ticket;
    (void)reason;
    peer->list_answers++;
    peer->is_last = is_last;
    for (int i = 0; i < count; i++) {
        peer->is_unordered = peer->is_unordered || strcmp(keys[i], peer->order) <= 0;
        snprintf(peer->order, sizeof peer->order, "%s", keys[i]);
    }
    peer->listed_count += count;
    assert_true(count >= 0);
}

static void on_tell(void *user, const void *text, size_t size)
{
    struct peer *peer = user;

    free(peer->told);
    peer->told = malloc(size + 1);
    assert_non_null(peer->told);
    memcpy(peer->told, text, size);
    peer->told_size = size;
    peer->told_count++;
}

static void on_inbox(void *user, bool is_open)
{
    struct peer *peer = user;

    peer->is_inbox_open = is_open;
}

static void on_warning(void *user, const char *text)
{
    (void)user;
    assert_non_null(text);
}

/* ---- running ------------------------------------------------------------------------------- */

/* Waits until something can be done, and does it for all peers. */
static void turn_all(int64_t until_ns)
{
    struct dm_watch watch;
    int64_t left_ns;

    assert_true(dm_watch_init(&watch));
    dm_watch_clear(&watch);
    dm_watch_until(&watch, until_ns);
    for (int i = 0; i < peer_count; i++)
        peers[i].driver->ops->watch(peers[i].driver, &watch);
    left_ns = watch.due_ns - dm_clock_boot_ns();
    poll(watch.polled, (nfds_t)watch.count, left_ns > 0 ? (int)(left_ns / DM_NS_PER_MS + 1) : 0);
    dm_watch_free(&watch);
    for (int i = 0; i < peer_count; i++)
        peers[i].driver->ops->turn(peers[i].driver);
}

/* Until the condition is true; a driver that does not come so far fails. */
#define AWAIT(condition)                                     \
    do {                                                     \
        int64_t end_ns_ = dm_clock_boot_ns() + PATIENCE_NS;  \
        while (!(condition) && dm_clock_boot_ns() < end_ns_) \
            turn_all(end_ns_);                               \
        assert_true(condition);                              \
    } while (0)

static struct peer *open_peer(void)
{
    struct peer *peer = &peers[peer_count];
    const struct dm_reg_client client = { .user = peer,
                                          .on_ready = on_ready,
                                          .on_down = on_down,
                                          .on_reply = on_reply,
                                          .on_list = on_list,
                                          .on_tell = on_tell,
                                          .on_inbox = on_inbox,
                                          .on_warning = on_warning };
    uint64_t words[2];

    assert_true(peer_count < PEERS);
    memset(peer, 0, sizeof *peer);
    dm_ident_random(words, 2);
    snprintf(peer->inbox, sizeof peer->inbox, "%016llx%016llx", (unsigned long long)words[0],
             (unsigned long long)words[1]);
    peer->driver = bed->open(bed->user, &client);
    assert_non_null(peer->driver);
    peer_count++;
    assert_true(peer->driver->ops->listen(peer->driver, peer->inbox));
    peer->driver->ops->want(peer->driver);
    AWAIT(peer->is_ready);
    if (peer->driver->can.has_tells)
        AWAIT(peer->is_inbox_open);
    return peer;
}

static void forget_answers(struct peer *peer)
{
    for (int i = 0; i < peer->answer_count; i++)
        free(peer->answers[i].value);
    peer->answer_count = 0;
}

static void close_peer(struct peer *peer)
{
    peer->driver->ops->end(peer->driver);
    if (bed->close)
        bed->close(bed->user, peer->driver);
    forget_answers(peer);
    free(peer->told);
}

static int begin(void **state)
{
    uint64_t random;

    (void)state;
    dm_ident_random(&random, 1);
    snprintf(word, sizeof word, "t%016llx", (unsigned long long)random);
    dm_reg_writer_init(&writer);
    peer_count = 0;
    return 0;
}

static int end(void **state)
{
    (void)state;
    while (peer_count > 0)
        close_peer(&peers[--peer_count]);
    return 0;
}

/* ---- asking -------------------------------------------------------------------------------- */

static const char *key_of(const char *leaf)
{
    static char keys[4][DM_REG_KEY_MAX + 1];
    static unsigned next;

    next = (next + 1) % 4;
    snprintf(keys[next], sizeof keys[next], "%s/%s", word, leaf);
    return keys[next];
}

/* A value with a new version, and so many bytes of text after it. */
static uint8_t *make_value(size_t size, struct dm_reg_version *ret_version)
{
    uint8_t *value = malloc(size);

    assert_true(value && size >= DM_REG_VERSION_SIZE);
    *ret_version = dm_reg_writer_next(&writer);
    for (size_t i = 0; i < size; i++)
        value[i] = (uint8_t)(i * 7 + i / 251);
    memcpy(value, ret_version->bytes, sizeof ret_version->bytes);
    return value;
}

/* Sends; the answers will be the peer's next ones.  Returns the first. */
static struct answer *send_items(struct peer *peer, bool is_swap, const struct dm_reg_item *items, int count)
{
    struct answer *first = &peer->answers[peer->answer_count];

    assert_true(peer->answer_count + count <= ANSWERS_MAX);
    last_ticket++;
    for (int i = 0; i < count; i++)
        peer->answers[peer->answer_count++] = (struct answer){ .ticket = last_ticket, .index = i };
    assert_true(is_swap ? peer->driver->ops->swap(peer->driver, last_ticket, items, count)
                        : peer->driver->ops->read(peer->driver, last_ticket, items, count));
    return first;
}

static struct answer *ask(struct peer *peer, bool is_swap, const struct dm_reg_item *item)
{
    struct answer *answer;

    forget_answers(peer);
    answer = send_items(peer, is_swap, item, 1);
    AWAIT(answer->count);
    return answer;
}

static struct answer *read_key(struct peer *peer, const char *key)
{
    return ask(peer, false, &(struct dm_reg_item){ .key = key });
}

/* Swaps the version, or absent, for a new value of this size; *version becomes that of the new value if it is done. */
static struct answer *swap_key(struct peer *peer, const char *key, struct dm_reg_version *version, size_t size)
{
    struct dm_reg_version next = { 0 };
    uint8_t *value = size ? make_value(size, &next) : NULL;
    struct answer *answer =
        ask(peer, true, &(struct dm_reg_item){ .key = key, .version = *version, .value = value, .size = size });

    if (answer->outcome == DM_REG_DONE)
        *version = size ? answer->version : (struct dm_reg_version){ 0 };
    free(value);
    return answer;
}

static const struct dm_reg_version absent;

/* ---- read and swap ------------------------------------------------------------------------- */

static void test_absent_key_is_read_as_absent(void **state)
{
    struct peer *peer = open_peer();
    struct answer *answer = read_key(peer, key_of("x"));

    (void)state;
    assert_int_equal(answer->outcome, DM_REG_DONE);
    assert_int_equal(answer->size, 0);
    assert_true(dm_reg_version_is_absent(&answer->version));
}

/* A key is created once, and its value comes back byte for byte, to every process. */
static void test_value_is_created_once_and_read_by_all(void **state)
{
    struct peer *one = open_peer(), *other = open_peer();
    struct dm_reg_version version = absent, late = absent, expected;
    const char *key = key_of("x");
    uint8_t *value = make_value(1000, &expected);
    struct answer *answer;

    (void)state;
    answer = ask(one, true, &(struct dm_reg_item){ .key = key, .value = value, .size = 1000 });
    assert_int_equal(answer->outcome, DM_REG_DONE);
    version = answer->version;
    assert_int_equal(swap_key(other, key, &late, 100)->outcome, DM_REG_CONFLICT);
    answer = read_key(other, key);
    assert_int_equal(answer->outcome, DM_REG_DONE);
    assert_int_equal(answer->size, 1000);
    assert_memory_equal(answer->value, value, 1000);
    assert_true(dm_reg_version_equals(&answer->version, &version));
    free(value);
}

static void test_read_of_a_known_version_is_the_same(void **state)
{
    struct peer *one = open_peer(), *other = open_peer();
    struct dm_reg_version version = absent, known;
    const char *key = key_of("x");
    struct answer *answer;

    (void)state;
    swap_key(one, key, &version, 100);
    known = version;
    answer = ask(other, false, &(struct dm_reg_item){ .key = key, .version = known });
    assert_int_equal(answer->outcome, DM_REG_SAME);
    swap_key(one, key, &version, 50);
    answer = ask(other, false, &(struct dm_reg_item){ .key = key, .version = known });
    assert_int_equal(answer->outcome, DM_REG_DONE);
    assert_int_equal(answer->size, 50);
}

/* A refused swap changes nothing.  If it brings a value, that is the newest one, not the one it was refused for. */
static void test_conflict_changes_nothing_and_brings_the_newest(void **state)
{
    struct peer *one = open_peer(), *other = open_peer();
    struct dm_reg_version version = absent, old;
    const char *key = key_of("x");
    struct answer *answer;

    (void)state;
    swap_key(one, key, &version, 100);
    old = version;
    swap_key(one, key, &version, 200);
    answer = swap_key(other, key, &old, 300);
    assert_int_equal(answer->outcome, DM_REG_CONFLICT);
    if (answer->has_value) {
        assert_int_equal(answer->size, 200);
        assert_true(dm_reg_version_equals(&answer->version, &version));
    }
    answer = read_key(other, key);
    assert_int_equal(answer->size, 200);
    assert_true(dm_reg_version_equals(&answer->version, &version));
}

/* A deleted key is absent again, and no version from before fits what is made later. */
static void test_deleted_key_is_absent_and_its_versions_never_fit_again(void **state)
{
    struct peer *peer = open_peer();
    struct dm_reg_version version = absent, old;
    const char *key = key_of("x");

    (void)state;
    swap_key(peer, key, &version, 100);
    old = version;
    assert_int_equal(swap_key(peer, key, &version, 0)->outcome, DM_REG_DONE);
    assert_int_equal(read_key(peer, key)->size, 0);
    assert_int_equal(swap_key(peer, key, &old, 100)->outcome, DM_REG_CONFLICT);
    assert_int_equal(swap_key(peer, key, &old, 0)->outcome, DM_REG_CONFLICT);
    version = absent;
    assert_int_equal(swap_key(peer, key, &version, 100)->outcome, DM_REG_DONE);
    assert_int_equal(swap_key(peer, key, &old, 100)->outcome, DM_REG_CONFLICT);
}

/* Linearizable: so many swaps are done as the counter says, whoever was in between. */
static void test_counter_of_eight_processes_counts_right(void **state)
{
    struct {
        struct dm_reg_version version;
        uint64_t number, seen;
        struct answer *answer;
        bool is_read;
    } at[PEERS] = { 0 };
    const char *key = key_of("counter");
    uint64_t done = 0, unknown = 0, number = 0;
    struct answer *answer;

    (void)state;
    for (int i = 0; i < PEERS; i++)
        open_peer();
    while (done < 400) {
        for (int i = 0; i < PEERS; i++) {
            uint8_t value[DM_REG_VERSION_SIZE + sizeof number];

            if (at[i].answer && !at[i].answer->count)
                continue;
            answer = at[i].answer;
            if (answer && answer->has_value && answer->outcome != DM_REG_UNKNOWN) {
                at[i].version = answer->version;
                at[i].number = 0;
                if (answer->size == sizeof value)
                    memcpy(&at[i].number, answer->value + DM_REG_VERSION_SIZE, sizeof at[i].number);
                assert_true(at[i].number >= at[i].seen); /* never older than what it has seen */
            }
            if (answer && !at[i].is_read) {
                done += answer->outcome == DM_REG_DONE;
                unknown += answer->outcome == DM_REG_UNKNOWN;
                if (answer->outcome == DM_REG_DONE)
                    at[i].version = answer->version;
                if (answer->outcome == DM_REG_DONE)
                    at[i].number++;
            }
            forget_answers(&peers[i]);
            at[i].is_read = !answer || (!answer->has_value && answer->outcome != DM_REG_DONE);
            if (at[i].is_read) {
                at[i].answer = send_items(&peers[i], false, &(struct dm_reg_item){ .key = key }, 1);
                continue;
            }
            at[i].seen = at[i].number;
            memcpy(value, dm_reg_writer_next(&writer).bytes, DM_REG_VERSION_SIZE);
            number = at[i].number + 1;
            memcpy(value + DM_REG_VERSION_SIZE, &number, sizeof number);
            at[i].answer = send_items(
                &peers[i], true,
                &(struct dm_reg_item){ .key = key, .version = at[i].version, .value = value, .size = sizeof value }, 1);
        }
        turn_all(dm_clock_boot_ns() + DM_NS_PER_S);
    }
    for (int i = 0; i < PEERS; i++) {
        AWAIT(at[i].answer->count);
        if (!at[i].is_read) {
            done += at[i].answer->outcome == DM_REG_DONE;
            unknown += at[i].answer->outcome == DM_REG_UNKNOWN;
        }
    }
    answer = read_key(&peers[0], key);
    memcpy(&number, answer->value + DM_REG_VERSION_SIZE, sizeof number);
    assert_true(number >= done && number <= done + unknown);
}

/* A read is never older than what the process has seen or written of the key. */
static void test_read_is_never_older_than_what_was_seen(void **state)
{
    struct peer *one = open_peer(), *other = open_peer();
    struct dm_reg_version version = absent;
    const char *key = key_of("x");
    struct answer *answer;

    (void)state;
    for (size_t size = 100; size < 200; size++) {
        assert_int_equal(swap_key(one, key, &version, size)->outcome, DM_REG_DONE);
        answer = read_key(size % 2 ? one : other, key);
        assert_true(answer->size == size);
    }
}

/* ---- items --------------------------------------------------------------------------------- */

/* The items of one call are executed each for itself, those of one key in their order, and each is answered once. */
static void test_items_of_a_call_are_each_for_itself(void **state)
{
    struct peer *peer = open_peer();
    struct dm_reg_version first, second, third, wrong = dm_reg_writer_next(&writer);
    uint8_t *values[] = { make_value(100, &first), make_value(101, &second), make_value(102, &third) };
    const struct dm_reg_item items[] = { { .key = key_of("a"), .value = values[0], .size = 100 },
                                         { .key = key_of("b"), .version = wrong, .value = values[1], .size = 101 },
                                         { .key = key_of("a"), .value = values[2], .size = 102 },
                                         { .key = key_of("c"), .value = values[1], .size = 101 } };
    static const enum dm_reg_outcome expected[] = { DM_REG_DONE, DM_REG_CONFLICT, DM_REG_CONFLICT, DM_REG_DONE };
    struct answer *answers = send_items(peer, true, items, 4);

    (void)state;
    for (int i = 0; i < 4; i++)
        AWAIT(answers[i].count);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(answers[i].outcome, expected[i]);
        assert_int_equal(answers[i].count, 1);
    }
    assert_int_equal(read_key(peer, key_of("a"))->size, 100);
    assert_int_equal(read_key(peer, key_of("b"))->size, 0);
    for (int i = 0; i < 3; i++)
        free(values[i]);
}

/* ---- limits -------------------------------------------------------------------------------- */

/* Each byte that a key may have, in keys of the full length that differ in one byte only. */
static void test_keys_of_all_bytes_are_different_keys(void **state)
{
    static const char bytes[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~%/-";
    struct peer *peer = open_peer();
    char key[DM_REG_KEY_MAX + 1];
    struct dm_reg_version version;

    (void)state;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < sizeof bytes - 1; i++) {
            memset(key, 'x', sizeof key - 1);
            key[sizeof key - 1] = '\0';
            memcpy(key, word, strlen(word));
            key[sizeof key - 2] = bytes[i];
            version = absent;
            if (pass == 0)
                assert_int_equal(swap_key(peer, key, &version, 100 + i)->outcome, DM_REG_DONE);
            else
                assert_int_equal(read_key(peer, key)->size, 100 + i);
        }
    }
}

static void test_value_may_have_value_max_bytes_and_no_more(void **state)
{
    struct peer *peer = open_peer();
    size_t most = peer->driver->can.value_max;
    struct dm_reg_version version = absent, none = absent;
    const char *key = key_of("x"), *other = key_of("y");

    (void)state;
    assert_true(most >= 1000);
    assert_int_equal(swap_key(peer, key, &version, most)->outcome, DM_REG_DONE);
    assert_true(read_key(peer, key)->size == most);
    assert_int_equal(swap_key(peer, key, &version, 100)->outcome, DM_REG_DONE);
    assert_int_equal(swap_key(peer, other, &none, most + 1)->outcome, DM_REG_TOO_LARGE);
    assert_int_equal(read_key(peer, other)->size, 0);
    assert_int_equal(read_key(peer, key)->size, 100);
}

/* A value of every byte, and one that is its version alone. */
static void test_values_are_any_bytes(void **state)
{
    struct peer *peer = open_peer();
    struct dm_reg_version version = absent, next;
    const char *key = key_of("x");
    uint8_t *value = make_value(DM_REG_VERSION_SIZE + 256, &next);
    struct answer *answer;

    (void)state;
    assert_int_equal(swap_key(peer, key, &version, DM_REG_VERSION_SIZE)->outcome, DM_REG_DONE);
    assert_int_equal(read_key(peer, key)->size, DM_REG_VERSION_SIZE);
    for (int i = 0; i < 256; i++)
        value[DM_REG_VERSION_SIZE + i] = (uint8_t)i;
    answer =
        ask(peer, true,
            &(struct dm_reg_item){ .key = key, .version = version, .value = value, .size = DM_REG_VERSION_SIZE + 256 });
    assert_int_equal(answer->outcome, DM_REG_DONE);
    answer = read_key(peer, key);
    assert_int_equal(answer->size, DM_REG_VERSION_SIZE + 256);
    assert_memory_equal(answer->value, value, DM_REG_VERSION_SIZE + 256);
    free(value);
}

/* ---- lists --------------------------------------------------------------------------------- */

static void list_keys(struct peer *peer, const char *prefix, const char *after, int most)
{
    int answers = peer->list_answers;

    peer->listed_count = 0;
    peer->is_unordered = false;
    snprintf(peer->order, sizeof peer->order, "%s", after);
    assert_true(peer->driver->ops->list(peer->driver, ++last_ticket, prefix, after, most));
    AWAIT(peer->list_answers > answers);
    assert_false(peer->is_unordered);
    assert_true(peer->listed_count <= most);
}

/* Ascending by bytes, a piece at a time; a prefix is no pattern. */
static void test_list_has_all_keys_of_a_prefix_in_order(void **state)
{
    struct peer *peer = open_peer();
    char leaf[32], prefix[64];
    struct dm_reg_version version;
    int count = 0;

    (void)state;
    if (!peer->driver->can.has_lists)
        return;
    for (int i = 0; i < 25; i++) {
        version = absent;
        snprintf(leaf, sizeof leaf, "l%%/%c%d", i % 2 ? 'a' : 'B', i);
        assert_int_equal(swap_key(peer, key_of(leaf), &version, 100)->outcome, DM_REG_DONE);
    }
    version = absent;
    assert_int_equal(swap_key(peer, key_of("lx/no"), &version, 100)->outcome, DM_REG_DONE);
    snprintf(prefix, sizeof prefix, "%s/l%%/", word);
    list_keys(peer, prefix, "", 100);
    assert_int_equal(peer->listed_count, 25);
    assert_true(peer->is_last);
    peer->order[0] = '\0';
    do {
        char after[DM_REG_KEY_MAX + 1];

        snprintf(after, sizeof after, "%s", peer->order);
        list_keys(peer, prefix, after, 10);
        count += peer->listed_count;
    } while (!peer->is_last);
    assert_int_equal(count, 25);
    snprintf(prefix, sizeof prefix, "%s/nothing", word);
    list_keys(peer, prefix, "", 10);
    assert_int_equal(peer->listed_count, 0);
    assert_true(peer->is_last);
}

/* ---- ages ---------------------------------------------------------------------------------- */

/* An age is never more than has passed since the swap was sent, and it grows. */
static void test_age_is_a_lower_bound(void **state)
{
    struct peer *one = open_peer(), *other = open_peer();
    struct dm_reg_version version = absent;
    const char *key = key_of("x");
    int64_t sent_ns = dm_clock_boot_ns(), age_ms;

    (void)state;
    if (!one->driver->can.has_ages)
        return;
    swap_key(one, key, &version, 100);
    do {
        struct answer *answer = ask(other, false, &(struct dm_reg_item){ .key = key, .version = version });

        age_ms = answer->age_ms;
        assert_true(age_ms <= (dm_clock_boot_ns() - sent_ns) / DM_NS_PER_MS + 1);
        assert_true(dm_clock_boot_ns() - sent_ns < PATIENCE_NS);
    } while (age_ms < 30);
    sent_ns = dm_clock_boot_ns();
    swap_key(one, key, &version, 100);
    age_ms = read_key(other, key)->age_ms;
    assert_true(age_ms <= (dm_clock_boot_ns() - sent_ns) / DM_NS_PER_MS + 1);
}

/* ---- notices ------------------------------------------------------------------------------- */

static struct answer *tell(struct peer *from, const struct peer *to, const char *key, struct dm_reg_version *version,
                           const void *text, size_t size)
{
    const struct dm_reg_tell notice = { to->inbox, text, size };
    struct dm_reg_version next;
    uint8_t *value = make_value(100, &next);
    struct answer *answer =
        ask(from, true,
            &(struct dm_reg_item){
                .key = key, .version = *version, .value = value, .size = 100, .tells = &notice, .tell_count = 1 });

    if (answer->outcome == DM_REG_DONE)
        *version = answer->version;
    free(value);
    return answer;
}

/* A notice of a swap that was refused never comes; one of a swap that is done comes to its inbox alone. */
static void test_notice_comes_only_if_the_swap_is_done(void **state)
{
    struct peer *from = open_peer(), *to = open_peer(), *other = open_peer();
    struct dm_reg_version version = absent, wrong = dm_reg_writer_next(&writer);
    const char *key = key_of("x");

    (void)state;
    if (!to->driver->can.has_tells)
        return;
    assert_int_equal(tell(from, to, key, &version, "first", 5)->outcome, DM_REG_DONE);
    AWAIT(to->told_count == 1);
    assert_int_equal(tell(from, to, key, &wrong, "wrong", 5)->outcome, DM_REG_CONFLICT);
    assert_int_equal(tell(from, to, key, &version, "second", 6)->outcome, DM_REG_DONE);
    AWAIT(to->told_count >= 2);
    assert_int_equal(to->told_count, 2);
    assert_int_equal(to->told_size, 6);
    assert_memory_equal(to->told, "second", 6);
    assert_int_equal(other->told_count, 0);
    assert_int_equal(from->told_count, 0);
}

/* Any bytes, up to the limit; and nobody need be there. */
static void test_notice_may_be_any_bytes(void **state)
{
    struct peer *from = open_peer(), *to = open_peer(), nobody = { .inbox = "00000000000000000000000000000000" };
    struct dm_reg_version version = absent;
    const char *key = key_of("x");
    uint8_t text[DM_REG_TELL_MAX];

    (void)state;
    if (!to->driver->can.has_tells)
        return;
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (uint8_t)i;
    assert_int_equal(tell(from, &nobody, key, &version, "x", 1)->outcome, DM_REG_DONE);
    assert_int_equal(tell(from, to, key, &version, text, sizeof text)->outcome, DM_REG_DONE);
    AWAIT(to->told_count == 1);
    assert_int_equal(to->told_size, sizeof text);
    assert_memory_equal(to->told, text, sizeof text);
}

/* ---- the connection ------------------------------------------------------------------------ */

/* All processes see one identity, and it stays the same over a new connection. */
static void test_identity_is_the_same_for_all_and_over_a_new_connection(void **state)
{
    struct peer *one = open_peer(), *other = open_peer();
    char identity[DM_REG_IDENTITY_ROOM];

    (void)state;
    assert_string_equal(one->identity, other->identity);
    snprintf(identity, sizeof identity, "%s", one->identity);
    one->driver->ops->rest(one->driver);
    one->is_ready = false;
    assert_false(one->driver->ops->read(one->driver, ++last_ticket, &(struct dm_reg_item){ .key = key_of("x") }, 1));
    one->driver->ops->want(one->driver);
    AWAIT(one->is_ready);
    assert_string_equal(one->identity, identity);
    assert_int_equal(one->downs, 0);
}

/* Other data have another identity, and a swap that was computed from the former ones does not fit. */
static void test_identity_changes_with_the_data(void **state)
{
    struct peer *peer = open_peer();
    struct dm_reg_version version = absent;
    const char *key = key_of("x");
    char identity[DM_REG_IDENTITY_ROOM];

    (void)state;
    if (!bed->change_data)
        return;
    assert_int_equal(swap_key(peer, key, &version, 100)->outcome, DM_REG_DONE);
    snprintf(identity, sizeof identity, "%s", peer->identity);
    bed->change_data(bed->user);
    AWAIT(peer->downs > 0 && peer->is_ready);
    assert_string_not_equal(peer->identity, identity);
    assert_int_equal(swap_key(open_peer(), key_of("y"), &(struct dm_reg_version){ 0 }, 100)->outcome, DM_REG_DONE);
}

/* What is under way at a break is answered once, before on_down(); then the driver connects again by itself. */
static void test_broken_connection_answers_everything_once(void **state)
{
    struct peer *peer = open_peer();
    struct dm_reg_version next;
    uint8_t *value = make_value(100, &next);
    struct answer *answers[20];
    char leaf[16];
    uint64_t sure = 0, present = 0;

    (void)state;
    if (!bed->cut) {
        free(value);
        return;
    }
    for (int i = 0; i < 20; i++) {
        snprintf(leaf, sizeof leaf, "x%d", i);
        answers[i] =
            send_items(peer, true, &(struct dm_reg_item){ .key = key_of(leaf), .value = value, .size = 100 }, 1);
    }
    bed->cut(bed->user);
    AWAIT(peer->downs == 1);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(answers[i]->count, 1);
        assert_true(answers[i]->outcome == DM_REG_UNKNOWN || answers[i]->outcome == DM_REG_DONE);
        sure += answers[i]->outcome == DM_REG_DONE;
    }
    AWAIT(peer->is_ready);
    for (int i = 0; i < 20; i++) {
        snprintf(leaf, sizeof leaf, "x%d", i);
        present += read_key(peer, key_of(leaf))->size == 100;
    }
    assert_true(present >= sure && present <= 20);
    free(value);
}

/* A forked child forgets the driver, and the parent's connection goes on. */
static void test_child_forgets_the_driver_and_the_parent_goes_on(void **state)
{
    struct peer *peer = open_peer();
    struct dm_reg_version version = absent;
    const char *key = key_of("x");
    int status;
    pid_t child;

    (void)state;
    assert_int_equal(swap_key(peer, key, &version, 100)->outcome, DM_REG_DONE);
    child = fork();
    if (child == 0) {
        peer->driver->ops->forget(peer->driver);
        _exit(0);
    }
    assert_true(waitpid(child, &status, 0) == child && status == 0);
    assert_int_equal(swap_key(peer, key, &version, 101)->outcome, DM_REG_DONE);
    assert_int_equal(peer->downs, 0);
}

static void test_driver_says_where_the_store_is(void **state)
{
    struct peer *peer = open_peer();
    char text[DM_REG_REASON_ROOM];

    (void)state;
    peer->driver->ops->place(peer->driver, text, sizeof text);
    assert_true(strlen(text) > 0);
    assert_true(peer->driver->can.value_max >= 1000);
    assert_true(peer->driver->can.lease_ms_min > 0);
}

/* ---- all ----------------------------------------------------------------------------------- */

#define TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int driver_suite(const struct driver_bed *the_bed)
{
    const struct CMUnitTest tests[] = {
        TEST(test_absent_key_is_read_as_absent),
        TEST(test_value_is_created_once_and_read_by_all),
        TEST(test_read_of_a_known_version_is_the_same),
        TEST(test_conflict_changes_nothing_and_brings_the_newest),
        TEST(test_deleted_key_is_absent_and_its_versions_never_fit_again),
        TEST(test_counter_of_eight_processes_counts_right),
        TEST(test_read_is_never_older_than_what_was_seen),
        TEST(test_items_of_a_call_are_each_for_itself),
        TEST(test_keys_of_all_bytes_are_different_keys),
        TEST(test_value_may_have_value_max_bytes_and_no_more),
        TEST(test_values_are_any_bytes),
        TEST(test_list_has_all_keys_of_a_prefix_in_order),
        TEST(test_age_is_a_lower_bound),
        TEST(test_notice_comes_only_if_the_swap_is_done),
        TEST(test_notice_may_be_any_bytes),
        TEST(test_identity_is_the_same_for_all_and_over_a_new_connection),
        TEST(test_identity_changes_with_the_data),
        TEST(test_broken_connection_answers_everything_once),
        TEST(test_child_forgets_the_driver_and_the_parent_goes_on),
        TEST(test_driver_says_where_the_store_is),
    };

    bed = the_bed;
    if (getenv("DRIVER_TEST"))
        cmocka_set_test_filter(getenv("DRIVER_TEST"));
    return cmocka_run_group_tests_name(bed->name, tests, NULL, NULL);
}
