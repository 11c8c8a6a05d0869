/* SPDX-License-Identifier: BSD-2-Clause */
/* registers/value: values as bytes.  What we write comes back; what is not ours is refused. */
#include "names.h"

#include <errno.h>

#include "random.h"
#include "store/store.h"

static struct dm_reg_name_value name;

static int begin(void **state)
{
    (void)state;
    dm_reg_writer_init(&names_writer);
    dm_reg_name_init(&name);
    return 0;
}

static int end(void **state)
{
    (void)state;
    dm_reg_name_free(&name);
    return 0;
}

/* ---- a name ------------------------------------------------------------------------------ */

/* An absent name is no bytes, and no bytes are an absent name. */
static void test_name_is_absent_when_there_are_no_bytes(void **state)
{
    const char *reason = NULL;

    (void)state;
    assert_int_equal(dm_reg_name_decode(&name, NULL, 0, &reason), 0);
    assert_true(dm_reg_version_is_absent(&name.version));
    assert_true(dm_reg_is_idle(&name));
}

/* Each part of a name comes back as it was. */
static void test_name_comes_back_when_all_parts_are_set(void **state)
{
    struct dm_reg_version version;

    (void)state;
    set_name(&name, "a1r+x b2k C3t | d4+y e5r a6 | f7:x g8:y b9:x ; died doubt");
    version = name.version;
    name.kind = DM_REG_SEMAPHORE;
    name.capacity = 1000;
    name.entries[1].weight = 998;
    name.entries[0].token = LAST_TOKEN - 7;
    name.entries[4].thread = UINT64_C(1) << 40;
    name.entries[5].arrival = LAST_ARRIVAL;
    name.sessions[0].id.serial = UINT32_MAX;
    name.sessions[1].id.lease_ms = DM_LEASE_MAX_MS;
    pass_through_bytes(&name);
    assert_true(dm_reg_version_equals(&name.version, &version));
    assert_int_equal(name.kind, DM_REG_SEMAPHORE);
    assert_int_equal(name.capacity, 1000);
    assert_int_equal(name.token, LAST_TOKEN);
    assert_int_equal(name.arrival, LAST_ARRIVAL);
    assert_int_equal(name.entries[0].token, LAST_TOKEN - 7);
    assert_int_equal(name.entries[1].since_ms, 1001);
    assert_true(name.entries[4].thread == UINT64_C(1) << 40);
    assert_int_equal(name.entries[5].arrival, LAST_ARRIVAL);
    assert_true(name.sessions[0].id.serial == UINT32_MAX);
    assert_int_equal(name.sessions[1].id.lease_ms, DM_LEASE_MAX_MS);
    name.sessions[0].id.serial = 1;
    name.sessions[1].id.lease_ms = LEASE_MS;
    assert_name(&name, "a1r+x b2kw998 C3t | d4+y e5r a6 | f7:x g8:y b9:x ; died doubt");
}

static size_t size_of(const char *text)
{
    size_t size;

    dm_reg_name_free(&name);
    set_name(&name, text);
    for (int i = 0; i < name.hold_count + name.queue_count; i++) { /* numbers as large as in the field */
        name.entries[i].attempt += UINT64_C(1) << 62;
        name.entries[i].thread = UINT64_C(5) << 22;
        name.entries[i].since_ms = UINT64_C(200000000000) + 700 * (uint64_t)i;
    }
    name.token = UINT64_C(200000000000000);
    for (int i = 0; i < name.hold_count; i++)
        name.entries[i].token = name.token;
    size = dm_reg_name_encode(&name, NULL, 0);
    pass_through_bytes(&name);
    return size;
}

/* A held lock has some 90 bytes, and each waiter of another process 36 more; one of the same process 17. */
static void test_name_is_small_when_few_wait(void **state)
{
    size_t held = size_of("a1 | |"), one = size_of("a1 | b2 |"), two = size_of("a1 | b2 c3 |");

    (void)state;
    assert_true(held <= 95);
    assert_true(two - one <= 37);
    assert_true(size_of("a1 | b2 c3 b4 |") - two <= 18);
}

/* As many as there may be: one session each, and the highest numbers. */
static void fill(int holds, int waiters, int sleepers)
{
    int count = holds + waiters + sleepers;

    dm_reg_name_init(&name);
    assert_int_equal(dm_reg_name_reserve(&name, count, 1, count), 0);
    name.version = dm_reg_writer_next(&names_writer);
    name.identity = PRESENT;
    name.kind = DM_REG_SEMAPHORE;
    name.capacity = DM_REG_CAPACITY_MAX;
    name.token = DM_TOKEN_LIMIT - 1;
    name.arrival = DM_REG_NUMBER_LIMIT - 1;
    condition_index(&name, 'x');
    for (int i = 0; i < count; i++) {
        struct dm_reg_session_id id = { .serial = (uint32_t)i + 1,
                                        .lease_ms = DM_LEASE_MAX_MS,
                                        .identity = UINT64_MAX };

        name.sessions[name.session_count++].id = id;
        name.entries[i] = (struct dm_reg_entry){
            .attempt = UINT64_MAX - (uint64_t)i,
            .thread = DM_REG_NUMBER_LIMIT - 1,
            .token = i < holds ? name.token : 0,
            .arrival = i < holds ? 0 : name.arrival,
            .since_ms = DM_REG_NUMBER_LIMIT - 1 - (uint64_t)i,
            .weight = i ? 1 : 7,
            .session = (uint16_t)i,
            .flags = i < holds             ? DM_REG_FLAGS
                     : i < holds + waiters ? DM_REG_CARRIES
                                           : 0,
        };
    }
    name.hold_count = holds;
    name.queue_count = waiters;
    name.sleeper_count = sleepers;
}

/* A value has room for all who may hold, wait and sleep at once. */
static void test_name_comes_back_when_it_is_full(void **state)
{
    (void)state;
    fill(DM_REG_HOLDS_MAX, 2 * DM_REG_QUEUE_MAX, DM_REG_QUEUE_MAX);
    pass_through_bytes(&name);
    assert_int_equal(name.hold_count, DM_REG_HOLDS_MAX);
    assert_int_equal(name.session_count, DM_REG_HOLDS_MAX + 3 * DM_REG_QUEUE_MAX);
    assert_true(name.entries[30].attempt == UINT64_MAX - 30);
}

static int decode_again(const struct dm_reg_name_value *value)
{
    size_t size;
    uint8_t *bytes = bytes_of(value, &size);
    struct dm_reg_name_value copy;
    const char *reason = NULL;
    int result_of_decode = dm_reg_name_decode(&copy, bytes, size, &reason);

    free(bytes);
    if (result_of_decode)
        assert_true(reason && *reason && !copy.entries && !copy.hold_count);
    dm_reg_name_free(&copy);
    return result_of_decode;
}

/* One more of each than may be is refused. */
static void test_name_is_refused_when_it_is_more_than_full(void **state)
{
    static const int counts[][3] = { { DM_REG_HOLDS_MAX + 1, 0, 1 },
                                     { 0, 2 * DM_REG_QUEUE_MAX + 1, 1 },
                                     { 0, 1, DM_REG_QUEUE_MAX + 1 } };

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        dm_reg_name_free(&name);
        fill(counts[i][0], counts[i][1], counts[i][2]);
        assert_int_equal(decode_again(&name), EBADMSG);
    }
}

/* ---- what is not ours -------------------------------------------------------------------- */

#define WHOLE "a1r+x | b2 C3+y | d4:x e5:y ; died"

static void break_nothing(void)
{
}
static void break_version(void)
{
    name.version = (struct dm_reg_version){ { 0 } };
}
static void break_kind(void)
{
    name.kind = DM_REG_KIND_COUNT;
}
static void break_health(void)
{
    name.health = 3;
}
static void break_capacity(void)
{
    name.capacity = 0;
}
static void break_mutex(void)
{
    name.capacity = 2;
}
static void break_rwlock(void)
{
    name.kind = DM_REG_RWLOCK;
}
static void break_capacity_limit(void)
{
    name.kind = DM_REG_SEMAPHORE, name.capacity = UINT32_C(1) << 31;
}
static void break_token(void)
{
    name.token = DM_TOKEN_LIMIT;
}
static void break_arrival(void)
{
    name.arrival = DM_REG_NUMBER_LIMIT;
}
static void break_recovery(void)
{
    name.health = DM_REG_NOT_RECOVERABLE;
}
static void break_weight(void)
{
    name.entries[0].weight = 2;
}
static void break_weight_zero(void)
{
    name.entries[1].weight = 0;
}
static void break_flags(void)
{
    name.entries[0].flags |= 32;
}
static void break_keeper(void)
{
    name.entries[1].flags |= DM_REG_KEPT;
}
static void break_carrier(void)
{
    name.entries[3].flags |= DM_REG_CARRIES;
}
static void break_attempt(void)
{
    name.entries[2].attempt = 0;
}
static void break_thread(void)
{
    name.entries[2].thread = DM_REG_NUMBER_LIMIT;
}
static void break_since(void)
{
    name.entries[2].since_ms = DM_REG_NUMBER_LIMIT;
}
static void break_session(void)
{
    name.entries[2].session = 5;
}
static void break_condition(void)
{
    name.entries[2].condition = 2;
}
static void break_hold_token(void)
{
    name.entries[0].token = 0;
}
static void break_hold_token_above(void)
{
    name.entries[0].token = LAST_TOKEN + 1;
}
static void break_order(void)
{
    name.entries[2].arrival = name.entries[1].arrival - 1;
}
static void break_order_above(void)
{
    name.entries[2].arrival = LAST_ARRIVAL + 1;
}
static void break_no_arrival(void)
{
    name.entries[3].arrival = 0;
}
static void break_uses(void)
{
    name.entries[4].session = 0;
}
static void break_condition_uses(void)
{
    name.entries[4].condition = 0, name.entries[2].condition = 0;
}
static void break_serial(void)
{
    name.sessions[0].id.serial = 0;
}
static void break_lease(void)
{
    name.sessions[0].id.lease_ms = 0;
}
static void break_lease_limit(void)
{
    name.sessions[0].id.lease_ms = DM_LEASE_MAX_MS + 1;
}
static void break_identity(void)
{
    name.sessions[0].id.identity = 0;
}
static void break_condition_twice(void)
{
    strcpy(name.conditions[1].name, "x");
}
static void break_condition_empty(void)
{
    name.conditions[1].name[0] = '\0';
}
static void break_condition_letter(void)
{
    name.conditions[1].name[0] = ' ';
}

/* A value with any fault is refused as a whole. */
static void test_name_is_refused_when_anything_is_wrong_in_it(void **state)
{
    static void (*const faults[])(void) = {
        break_version,         break_kind,
        break_health,          break_capacity,
        break_mutex,           break_rwlock,
        break_token,           break_arrival,
        break_capacity_limit,  break_recovery,
        break_weight,          break_weight_zero,
        break_flags,           break_keeper,
        break_carrier,         break_attempt,
        break_thread,          break_since,
        break_session,         break_condition,
        break_hold_token,      break_order,
        break_order_above,     break_hold_token_above,
        break_no_arrival,      break_uses,
        break_serial,          break_lease,
        break_lease_limit,     break_identity,
        break_condition_uses,  break_condition_twice,
        break_condition_empty, break_condition_letter,
    };

    (void)state;
    set_name(&name, WHOLE);
    break_nothing();
    assert_int_equal(decode_again(&name), 0);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        dm_reg_name_free(&name);
        set_name(&name, WHOLE);
        faults[i]();
        if (decode_again(&name) != EBADMSG)
            fail_msg("fault %zu is not seen", i);
    }
}

/* Returns the bytes of WHOLE, to be freed. */
static uint8_t *whole(size_t *ret_size)
{
    dm_reg_name_free(&name);
    set_name(&name, WHOLE);
    return bytes_of(&name, ret_size);
}

static int decode(const uint8_t *bytes, size_t size)
{
    const char *reason = NULL;

    dm_reg_name_free(&name);
    return dm_reg_name_decode(&name, bytes, size, &reason);
}

/* A value that is cut off anywhere is refused, and so is one with more bytes than it needs. */
static void test_name_is_refused_when_it_is_cut_or_longer(void **state)
{
    size_t size;
    uint8_t *bytes = whole(&size), *longer = calloc(1, size + 1);

    (void)state;
    assert_non_null(longer);
    for (size_t cut = 1; cut < size; cut++)
        assert_int_equal(decode(bytes, cut), EBADMSG);
    memcpy(longer, bytes, size);
    assert_int_equal(decode(longer, size + 1), EBADMSG);
    assert_int_equal(decode(longer, size), 0);
    free(bytes);
    free(longer);
}

/* Bytes that are taken are those that we would write: no number or table has a second form. */
static void test_name_has_one_form_only_when_a_bit_is_changed(void **state)
{
    size_t size;
    uint8_t *bytes = whole(&size);
    int taken = 0;

    (void)state;
    for (size_t bit = 0; bit < 8 * size; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        if (decode(bytes, size) == 0) {
            uint8_t again[TEXT_ROOM];

            assert_int_equal(dm_reg_name_encode(&name, again, sizeof again), size);
            assert_memory_equal(again, bytes, size);
            taken++;
        }
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    assert_true(taken > 100); /* the version, attempts, threads */
    free(bytes);
}

/* A value of another form is refused with a reason for people: a later version of the library may have written it. */
static void test_name_is_refused_with_a_reason_when_another_version_wrote_it(void **state)
{
    const char *reason = NULL;
    size_t size;
    uint8_t *bytes = whole(&size);

    (void)state;
    bytes[DM_REG_VERSION_SIZE] = 'o';
    dm_reg_name_free(&name);
    assert_int_equal(dm_reg_name_decode(&name, bytes, size, &reason), EBADMSG);
    assert_non_null(strstr(reason, "another version of libdmutex"));
    free(bytes);
}

/* Tidying leaves sessions and conditions that somebody uses, under new numbers. */
static void test_name_keeps_what_is_used_when_it_is_tidied(void **state)
{
    (void)state;
    set_name(&name, "a1 | b2 c3 | d4:x e5:y");
    name.entries[0] = name.entries[2]; /* c3 */
    name.entries[1] = name.entries[4]; /* e5:y */
    name.entries[0].token = LAST_TOKEN, name.entries[0].arrival = 0;
    name.queue_count = 0;
    name.sleeper_count = 1;
    dm_reg_name_tidy(&name);
    assert_int_equal(name.session_count, 2);
    assert_int_equal(name.condition_count, 1);
    assert_name(&name, "c3 | | e5:y");
}

/* ---- the small values --------------------------------------------------------------------- */

static uint8_t small[DM_REG_SMALL_MAX + 1];
static const char *why;

/* A living session comes back, with as many notes as there may be. */
static void test_session_comes_back_when_it_lives(void **state)
{
    struct dm_reg_session_value value = { .beat = 77, .lease_ms = DM_LEASE_MAX_MS, .broken_count = DM_REG_NOTES_MAX };
    struct dm_reg_session_value back;
    size_t size;

    (void)state;
    value.version = dm_reg_writer_next(&names_writer);
    memset(value.label, 'l', sizeof value.label - 1);
    for (int i = 0; i < DM_REG_NOTES_MAX; i++)
        value.broken[i] = UINT64_MAX - (uint64_t)i;
    size = dm_reg_session_encode(&value, small);
    assert_true(size <= DM_REG_SMALL_MAX);
    assert_int_equal(dm_reg_session_decode(small, size, &back, &why), 0);
    assert_memory_equal(&back, &value, sizeof value);
    for (size_t cut = 0; cut < size; cut++)
        assert_int_equal(dm_reg_session_decode(small, cut, &back, &why), EBADMSG);
    assert_int_equal(dm_reg_session_decode(small, size + 1, &back, &why), EBADMSG);
}

/* A dead session has the time of its death, and its label for people. */
static void test_session_comes_back_when_it_is_dead(void **state)
{
    struct dm_reg_session_value value = { .is_dead = true, .dead_us = NOW_US, .label = "1 host program" }, back;
    size_t size;

    (void)state;
    value.version = dm_reg_writer_next(&names_writer);
    size = dm_reg_session_encode(&value, small);
    assert_int_equal(dm_reg_session_decode(small, size, &back, &why), 0);
    assert_memory_equal(&back, &value, sizeof value);
    for (size_t cut = 0; cut < size; cut++)
        assert_int_equal(dm_reg_session_decode(small, cut, &back, &why), EBADMSG);
}

/* One that nobody has seen alive has no label. */
static void test_dead_session_needs_no_label(void **state)
{
    struct dm_reg_session_value value = { .is_dead = true, .dead_us = NOW_US }, back;

    (void)state;
    value.version = dm_reg_writer_next(&names_writer);
    assert_int_equal(dm_reg_session_decode(small, dm_reg_session_encode(&value, small), &back, &why), 0);
    assert_string_equal(back.label, "?");
}

/* The last hold of a free lock comes back; beside a holder there is none. */
static void test_last_hold_comes_back(void **state)
{
    struct dm_reg_name_value value = { .identity = 1, .capacity = 1, .token = 5, .arrival = 1 }, back;
    uint8_t bytes[200];
    size_t size;

    (void)state;
    value.version = dm_reg_writer_next(&names_writer);
    value.last = (struct dm_reg_last){ true, DM_END_BROKEN, 3, 1000, 50, "1 host program" };
    size = dm_reg_name_encode(&value, bytes, sizeof bytes);
    assert_int_equal(dm_reg_name_decode(&back, bytes, size, &why), 0);
    assert_memory_equal(&back.last, &value.last, sizeof back.last);
    for (size_t cut = 1; cut < size; cut++)
        assert_int_equal(dm_reg_name_decode(&back, bytes, cut, &why), EBADMSG);
    value.last.how = DM_END_BROKEN + 1;
    size = dm_reg_name_encode(&value, bytes, sizeof bytes);
    assert_int_equal(dm_reg_name_decode(&back, bytes, size, &why), EBADMSG);
}

/* A session without a lease, with a wild number of notes, or in the form of a name, is none. */
static void test_session_is_refused_when_it_is_not_ours(void **state)
{
    struct dm_reg_session_value value = { .beat = 1, .lease_ms = 0, .label = "1 host program" }, back = { .beat = 5 };
    size_t size;

    (void)state;
    value.version = dm_reg_writer_next(&names_writer);
    size = dm_reg_session_encode(&value, small);
    assert_int_equal(dm_reg_session_decode(small, size, &back, &why), EBADMSG);
    assert_int_equal(back.beat, 5);
    value.lease_ms = 1;
    size = dm_reg_session_encode(&value, small);
    assert_int_equal(dm_reg_session_decode(small, size, &back, &why), 0);
    small[size - 1] = 1; /* a note that does not follow */
    assert_int_equal(dm_reg_session_decode(small, size, &back, &why), EBADMSG);
    small[size - 1] = 0;
    small[DM_REG_VERSION_SIZE] = 'n';
    assert_int_equal(dm_reg_session_decode(small, size, &back, &why), EBADMSG);
}

static void test_mark_comes_back(void **state)
{
    struct dm_reg_mark_value value = { .identity = "epoch 12#1", .quiet_ms = DM_REG_NUMBER_LIMIT - 1 }, back;
    size_t size;

    (void)state;
    value.version = dm_reg_writer_next(&names_writer);
    size = dm_reg_mark_encode(&value, small);
    assert_int_equal(dm_reg_mark_decode(small, size, &back, &why), 0);
    assert_memory_equal(&back, &value, sizeof value);
    for (size_t cut = 0; cut < size; cut++)
        assert_int_equal(dm_reg_mark_decode(small, cut, &back, &why), EBADMSG);
    small[DM_REG_VERSION_SIZE + 3] = 0; /* a NUL in the identity */
    assert_int_equal(dm_reg_mark_decode(small, size, &back, &why), EBADMSG);
}

static void test_binding_comes_back(void **state)
{
    struct dm_reg_binding_value value = { .mutex = "ngroup/any \xff bytes" }, back;
    size_t size;

    (void)state;
    value.version = dm_reg_writer_next(&names_writer);
    size = dm_reg_binding_encode(&value, small);
    assert_int_equal(dm_reg_binding_decode(small, size, &back, &why), 0);
    assert_memory_equal(&back, &value, sizeof value);
    for (size_t cut = 0; cut < size; cut++)
        assert_int_equal(dm_reg_binding_decode(small, cut, &back, &why), EBADMSG);
    value.mutex[0] = '\0';
    size = dm_reg_binding_encode(&value, small);
    assert_int_equal(dm_reg_binding_decode(small, size, &back, &why), EBADMSG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_name_is_absent_when_there_are_no_bytes, begin, end),
        cmocka_unit_test_setup_teardown(test_name_comes_back_when_all_parts_are_set, begin, end),
        cmocka_unit_test_setup_teardown(test_name_is_small_when_few_wait, begin, end),
        cmocka_unit_test_setup_teardown(test_name_comes_back_when_it_is_full, begin, end),
        cmocka_unit_test_setup_teardown(test_name_is_refused_when_it_is_more_than_full, begin, end),
        cmocka_unit_test_setup_teardown(test_name_is_refused_when_anything_is_wrong_in_it, begin, end),
        cmocka_unit_test_setup_teardown(test_name_is_refused_when_it_is_cut_or_longer, begin, end),
        cmocka_unit_test_setup_teardown(test_name_has_one_form_only_when_a_bit_is_changed, begin, end),
        cmocka_unit_test_setup_teardown(test_name_is_refused_with_a_reason_when_another_version_wrote_it, begin, end),
        cmocka_unit_test_setup_teardown(test_name_keeps_what_is_used_when_it_is_tidied, begin, end),
        cmocka_unit_test_setup_teardown(test_session_comes_back_when_it_lives, begin, end),
        cmocka_unit_test_setup_teardown(test_session_comes_back_when_it_is_dead, begin, end),
        cmocka_unit_test_setup_teardown(test_dead_session_needs_no_label, begin, end),
        cmocka_unit_test_setup_teardown(test_last_hold_comes_back, begin, end),
        cmocka_unit_test_setup_teardown(test_session_is_refused_when_it_is_not_ours, begin, end),
        cmocka_unit_test_setup_teardown(test_mark_comes_back, begin, end),
        cmocka_unit_test_setup_teardown(test_binding_comes_back, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
