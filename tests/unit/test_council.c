/* SPDX-License-Identifier: BSD-2-Clause */
/* redis/council: when a word of the sentinels counts, and for how long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "random.h"
#include "redis/council.h"

#define FRESH 100

static struct dm_council council;
static const struct dm_master here = { .host = "10.0.0.1", .port = "6379" },
                              there = { .host = "10.0.0.2", .port = "6379" };
static const struct dm_master elsewhere = { .host = "10.0.0.3", .port = "6379" }, none = { .host = "" };

/* An id of 40 digits, as sentinels have. */
static const char *id_of(int number)
{
    static char ids[DM_COUNCIL_MOST + 10][DM_SENTINEL_ID];

    snprintf(ids[number], DM_SENTINEL_ID, "%040d", number);
    return ids[number];
}

static void begin(int count)
{
    council = (struct dm_council){ .fresh_ns = FRESH };
    for (int i = 0; i < count; i++)
        assert_int_equal(dm_council_add(&council, id_of(i)), i);
}

/* Asked and answered at once. */
static enum dm_council_news says(int index, const struct dm_master *master, int64_t now)
{
    return dm_council_take(&council, index, master, now, now);
}

static void test_a_word_counts_from_a_majority_on(void **state)
{
    (void)state;
    begin(3);
    assert_int_equal(says(0, &here, 10), DM_COUNCIL_SAME);
    assert_false(dm_council_is_fresh(&council, council.number, 10));
    assert_int_equal(says(1, &here, 20), DM_COUNCIL_WORD);
    assert_true(dm_council_is_fresh(&council, council.number, 20));
    assert_string_equal(council.word.host, here.host);
}

/* The older of two questions bounds the word of two: the newest alone would let one sentinel decide. */
static void test_a_word_counts_from_the_oldest_question_of_the_majority(void **state)
{
    (void)state;
    begin(3);
    says(0, &here, 10);
    says(1, &here, 50);
    assert_true(dm_council_is_fresh(&council, council.number, 10 + FRESH));
    assert_false(dm_council_is_fresh(&council, council.number, 11 + FRESH));
    says(2, &here, 60);
    assert_true(dm_council_is_fresh(&council, council.number, 50 + FRESH));
    assert_false(dm_council_is_fresh(&council, council.number, 51 + FRESH));
}

/* An answer that was long under way counts from its question on. */
static void test_a_late_answer_counts_from_its_question(void **state)
{
    (void)state;
    begin(1);
    assert_int_equal(dm_council_take(&council, 0, &here, 10, 10 + FRESH + 1), DM_COUNCIL_SAME);
    assert_false(dm_council_is_fresh(&council, council.number, 10 + FRESH + 1));
    assert_int_equal(dm_council_take(&council, 0, &here, 20, 30), DM_COUNCIL_WORD);
    assert_int_equal(council.until_ns, 20 + FRESH);
}

/* The first sentinel that says another master ends the word, also against the rest. */
static void test_one_other_answer_is_doubt(void **state)
{
    (void)state;
    begin(3);
    says(0, &here, 10);
    says(1, &here, 10);
    assert_int_equal(says(2, &there, 20), DM_COUNCIL_DOUBT);
    assert_false(dm_council_is_fresh(&council, council.number, 20));
    assert_int_equal(dm_council_take(&council, 0, &here, 15, 25), DM_COUNCIL_SAME); /* asked before the doubt */
    says(0, &here, 30);
    assert_int_equal(says(1, &here, 31), DM_COUNCIL_WORD);
}

/* A sentinel that goes on to say another master has been heard, and is outvoted. */
static void test_a_sentinel_that_differs_for_long_is_outvoted(void **state)
{
    (void)state;
    begin(3);
    says(2, &there, 5);
    says(0, &here, 10);
    assert_int_equal(says(1, &here, 10), DM_COUNCIL_WORD);
    assert_int_equal(says(2, &there, 20), DM_COUNCIL_SAME);
    assert_true(dm_council_is_fresh(&council, council.number, 20));
}

/* Else one sentinel that says another master in each answer would let nobody lock. */
static void test_a_sentinel_that_says_ever_another_master_is_outvoted(void **state)
{
    (void)state;
    begin(3);
    says(2, &there, 5);
    says(0, &here, 10);
    assert_int_equal(says(1, &here, 10), DM_COUNCIL_WORD);
    assert_int_equal(says(2, &elsewhere, 20), DM_COUNCIL_SAME);
    assert_int_equal(says(2, &none, 21), DM_COUNCIL_SAME);
    assert_true(dm_council_is_fresh(&council, council.number, 21));
    assert_int_equal(says(2, &here, 22), DM_COUNCIL_SAME);
    assert_int_equal(says(2, &there, 23), DM_COUNCIL_DOUBT);
}

static void test_the_number_rises_with_the_address(void **state)
{
    uint64_t first;

    (void)state;
    begin(3);
    says(0, &here, 10);
    says(1, &here, 10);
    first = council.number;
    says(0, &there, 20);
    says(0, &there, 21);
    assert_int_equal(says(1, &there, 22), DM_COUNCIL_WORD);
    assert_int_equal(council.number, first + 1);
    assert_false(dm_council_is_fresh(&council, first, 22));
}

/* The same address again keeps its number: a connection that has stayed is to the same server. */
static void test_the_number_stays_when_the_address_comes_back(void **state)
{
    uint64_t first;

    (void)state;
    begin(1);
    says(0, &here, 10);
    first = council.number;
    assert_int_equal(dm_council_look(&council, 10 + FRESH), DM_COUNCIL_SAME);
    assert_int_equal(dm_council_look(&council, 11 + FRESH), DM_COUNCIL_DOUBT);
    assert_int_equal(dm_council_look(&council, 12 + FRESH), DM_COUNCIL_SAME);
    assert_int_equal(says(0, &here, 200), DM_COUNCIL_WORD);
    assert_int_equal(council.number, first);
}

/* The same, by an epoch. */
static enum dm_council_news says_of(int index, const struct dm_master *master, uint64_t epoch, int64_t now)
{
    struct dm_master later = *master;

    later.epoch = epoch;
    return says(index, &later, now);
}

/* Replaced, and promoted again: only the epoch has changed.  One sentinel may be late, or lie. */
static void test_the_number_rises_with_the_epoch_of_a_majority(void **state)
{
    uint64_t first;

    (void)state;
    begin(3);
    says_of(0, &here, 5, 10);
    assert_int_equal(says_of(1, &here, 5, 10), DM_COUNCIL_WORD);
    first = council.number;
    assert_int_equal(council.word.epoch, 5);
    assert_int_equal(says_of(2, &here, 1000, 11), DM_COUNCIL_SAME);
    assert_int_equal(says_of(2, &here, 6, 12), DM_COUNCIL_SAME);
    assert_int_equal(says_of(0, &here, 6, 13), DM_COUNCIL_DOUBT);
    assert_false(dm_council_is_fresh(&council, first, 13));
    says_of(0, &here, 6, 20);
    assert_int_equal(says_of(1, &here, 6, 20), DM_COUNCIL_WORD);
    assert_int_equal(council.number, first + 1);
    assert_int_equal(council.word.epoch, 6);
    assert_int_equal(says_of(2, &here, 5, 21), DM_COUNCIL_SAME);
    assert_true(dm_council_is_fresh(&council, first + 1, 21));
}

/* A majority of which one sentinel tells an earlier epoch, or none, does not take the later epoch back. */
static void test_an_epoch_does_not_fall(void **state)
{
    uint64_t first;

    (void)state;
    begin(3);
    says_of(0, &here, 6, 10);
    says_of(1, &here, 6, 10);
    first = council.number;
    dm_council_look(&council, 11 + FRESH);
    says_of(1, &here, 6, 200);
    assert_int_equal(says_of(2, &here, 0, 200), DM_COUNCIL_WORD);
    assert_int_equal(council.number, first);
    assert_int_equal(council.word.epoch, 6);
}

/*
 * Replaced, promoted, replaced and promoted again: one sentinel has heard of it, and one that is cut off from the
 * others still tells the first promotion.
 */
static void test_sentinels_of_different_epochs_do_not_agree(void **state)
{
    (void)state;
    begin(3);
    says_of(0, &there, 5, 10);
    says_of(1, &here, 4, 10);
    assert_int_equal(says_of(2, &here, 6, 11), DM_COUNCIL_SAME);
    assert_int_equal(says_of(1, &here, 4, 12), DM_COUNCIL_SAME);
    assert_int_equal(says_of(0, &here, 6, 13), DM_COUNCIL_WORD);
    assert_int_equal(council.word.epoch, 6);
    dm_council_look(&council, 14 + FRESH);
    says_of(0, &here, 6, 200);
    assert_int_equal(says_of(1, &here, 4, 200), DM_COUNCIL_SAME);
    assert_false(dm_council_is_fresh(&council, council.number, 200));
}

static void test_an_unknown_name_is_told_once(void **state)
{
    (void)state;
    begin(3);
    says(0, &none, 10);
    assert_int_equal(says(1, &none, 10), DM_COUNCIL_NAME);
    assert_true(council.is_refused);
    assert_int_equal(says(2, &none, 10), DM_COUNCIL_SAME);
    says(0, &here, 20);
    assert_int_equal(says(1, &here, 20), DM_COUNCIL_WORD);
    assert_false(council.is_refused);
}

/* Listed by name and learned by address: one sentinel, with one voice. */
static void test_a_sentinel_has_one_voice_by_two_addresses(void **state)
{
    (void)state;
    council = (struct dm_council){ .fresh_ns = FRESH };
    assert_int_equal(dm_council_add(&council, ""), 0);
    assert_int_equal(dm_council_add(&council, id_of(1)), 1);
    assert_int_equal(dm_council_find(&council, id_of(1)), 1);
    assert_int_equal(dm_council_add(&council, id_of(2)), 2);
    assert_int_equal(dm_council_size(&council, 10), 2); /* the first is perhaps one of the others */
    dm_council_name(&council, 0, id_of(1));
    assert_int_equal(dm_council_size(&council, 10), 2);
    says(0, &here, 10);
    assert_int_equal(says(1, &here, 10), DM_COUNCIL_SAME);
    assert_int_equal(dm_council_heard(&council, 10), 1);
    assert_int_equal(says(2, &here, 10), DM_COUNCIL_WORD);
}

/* A listed sentinel that is gone, and that the others still know, counts once: one of three may be gone. */
static void test_a_listed_sentinel_that_is_gone_counts_once(void **state)
{
    (void)state;
    council = (struct dm_council){ .fresh_ns = FRESH };
    for (int i = 0; i < 3; i++)
        dm_council_add(&council, "");
    dm_council_name(&council, 0, id_of(0));
    dm_council_name(&council, 1, id_of(1));
    dm_council_add(&council, id_of(2)); /* the third, learned from the others */
    assert_int_equal(dm_council_majority(&council, 10), 2);
    says(0, &here, 10);
    assert_int_equal(says(1, &here, 10), DM_COUNCIL_WORD);
}

static void test_no_more_are_learned_than_there_is_room(void **state)
{
    (void)state;
    begin(DM_COUNCIL_MOST);
    assert_int_equal(dm_council_place(&council), -1);
    assert_int_equal(dm_council_majority(&council, 10), DM_COUNCIL_MOST / 2 + 1);
}

/* Sentinel `index` names the sentinels first to last by their ids, so often. */
static void names(int index, int first, int last, int times)
{
    struct dm_other others[DM_COUNCIL_MOST + 10];
    int count = 0;

    for (int i = first; i <= last; i++)
        others[count++] = (struct dm_other){ .id = id_of(i) };
    while (times-- > 0)
        dm_council_take_list(&council, index, others, count);
}

/* There are 17, of which two have no place: a majority is 9, however few are known. */
static void test_sentinels_without_a_place_count_in_the_majority(void **state)
{
    (void)state;
    begin(DM_COUNCIL_MOST);
    says(0, &here, 10);
    names(0, 1, DM_COUNCIL_MOST + 1, 1);
    for (int i = 1; i < 8; i++)
        assert_int_equal(says(i, &here, 10), DM_COUNCIL_SAME);
    assert_int_equal(dm_council_majority(&council, 10), 9);
    assert_int_equal(says(8, &here, 10), DM_COUNCIL_WORD);
}

/* The list of a sentinel that does not answer any more says nothing of now. */
static void test_old_lists_do_not_count(void **state)
{
    (void)state;
    begin(3);
    says(0, &here, 10);
    names(0, 1, 6, 1);
    assert_int_equal(dm_council_size(&council, 10), 7);
    assert_int_equal(dm_council_size(&council, 11 + FRESH), 3);
}

/* Another sentinel answers at an address, for instance behind a name that was moved: it has not said anything yet. */
static void test_the_answer_of_a_former_sentinel_does_not_count_for_the_next(void **state)
{
    (void)state;
    begin(3);
    says(0, &here, 10);
    assert_int_equal(dm_council_heard(&council, 10), 1);
    dm_council_name(&council, 0, id_of(0));
    assert_int_equal(dm_council_heard(&council, 10), 1);
    dm_council_name(&council, 0, id_of(7));
    assert_int_equal(dm_council_heard(&council, 10), 0);
}

/* Two listed, three learned, of which one is dead. */
static void begin_with_a_dead_one(void)
{
    council = (struct dm_council){ .fresh_ns = FRESH };
    for (int i = 0; i < 5; i++)
        dm_council_add(&council, i < 2 ? "" : id_of(i));
    dm_council_name(&council, 0, id_of(0));
    dm_council_name(&council, 1, id_of(1));
    assert_int_equal(dm_council_size(&council, 10), 5);
}

/* After SENTINEL RESET, and only then: sentinels name the dead ones that they know. */
static void test_a_sentinel_is_forgotten_when_nobody_names_it(void **state)
{
    (void)state;
    begin_with_a_dead_one();
    names(0, 2, 4, 1000);
    assert_int_equal(dm_council_size(&council, 10), 5);
    for (int i = 0; i < 1000; i++) {
        names(0, 2, 3, 1);
        names(1, 2, 4, 1); /* was not reset yet */
    }
    assert_int_equal(dm_council_size(&council, 10), 5);
    names(0, 2, 3, 1);
    assert_int_equal(dm_council_size(&council, 10), 5); /* a list or two are no proof: it is found anew soon */
    names(0, 2, 3, 1000);
    names(1, 2, 3, 1000);
    assert_true(dm_council_is_forgotten(&council, 4));
    assert_int_equal(dm_council_size(&council, 10), 4);
    assert_int_equal(dm_council_find(&council, id_of(4)), 4);
    names(0, 4, 4, 1);
    assert_int_equal(dm_council_size(&council, 10), 5);
}

/* Nor one that a confused sentinel does not name, while it answers itself. */
static void test_a_sentinel_is_not_forgotten_when_it_answers_or_is_listed(void **state)
{
    (void)state;
    begin_with_a_dead_one();
    for (int i = 0; i < 1000; i++) {
        names(0, 3, 3, 1);
        says(2, &here, i + 1);
    }
    assert_false(dm_council_is_forgotten(&council, 2));
    names(2, 3, 4, 1000); /* it names none that is listed; nor itself */
    assert_false(dm_council_is_forgotten(&council, 0));
    assert_false(dm_council_is_forgotten(&council, 1));
    assert_false(dm_council_is_forgotten(&council, 2));
}

static void test_the_place_of_a_forgotten_sentinel_is_used_again(void **state)
{
    (void)state;
    council = (struct dm_council){ .fresh_ns = FRESH };
    dm_council_add(&council, "");
    for (int i = 1; i < DM_COUNCIL_MOST; i++)
        dm_council_add(&council, id_of(i));
    says(7, &there, 1);
    assert_int_equal(dm_council_place(&council), -1);
    names(0, 8, DM_COUNCIL_MOST, 1000);
    assert_int_equal(dm_council_size(&council, 10), DM_COUNCIL_MOST - 8);
    names(0, 1, 6, 1);
    assert_int_equal(dm_council_add(&council, id_of(DM_COUNCIL_MOST)), 7);
    assert_false(dm_council_is_heard(&council, 7, 1));
    assert_int_equal(dm_council_find(&council, id_of(7)), -1);
    assert_int_equal(dm_council_place(&council), -1);
    assert_int_equal(dm_council_size(&council, 10), DM_COUNCIL_MOST - 1);
}

/* ---- any order of answers ---------------------------------------------------------------- */

/* The newest answer of each sentinel, kept apart from the council. */
static struct {
    const struct dm_master *master;
    int64_t asked;
} heard[DM_COUNCIL_MOST];

static int agreeing(int count, int64_t now, const struct dm_master *master)
{
    int agree = 0;

    for (int i = 0; i < count; i++)
        agree += heard[i].master == master && heard[i].asked + FRESH >= now;
    return agree;
}

/* Whatever was said in whatever order: a word that counts is that of a majority who were asked lately. */
static void test_a_fresh_word_is_of_a_majority(void **state)
{
    const struct dm_master *const masters[] = { &here, &there, &none };
    long fresh = 0;

    (void)state;
    for (int round = 0; round < rounds(2000); round++) {
        int count = 1 + (int)random_below(7);
        int64_t now = 1;

        begin(count);
        memset(heard, 0, sizeof heard);
        for (int step = 0; step < 60; step++) {
            int index = (int)random_below((unsigned)count);
            const struct dm_master *master = masters[random_below(20) < 15 ? (unsigned)round % 2 : random_below(3)];
            int64_t asked = now;

            now += random_below(FRESH / 2);
            heard[index].master = master;
            heard[index].asked = asked;
            dm_council_take(&council, index, master, asked, now);
            if (random_below(3) == 0)
                dm_council_look(&council, now);
            if (!dm_council_is_fresh(&council, council.number, now))
                continue;
            fresh++;
            assert_true(agreeing(count, now, strcmp(council.word.host, here.host) ? &there : &here) > count / 2);
        }
    }
    assert_true(fresh > 10000); /* else the test says nothing */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_word_counts_from_a_majority_on),
        cmocka_unit_test(test_a_word_counts_from_the_oldest_question_of_the_majority),
        cmocka_unit_test(test_a_late_answer_counts_from_its_question),
        cmocka_unit_test(test_one_other_answer_is_doubt),
        cmocka_unit_test(test_a_sentinel_that_differs_for_long_is_outvoted),
        cmocka_unit_test(test_a_sentinel_that_says_ever_another_master_is_outvoted),
        cmocka_unit_test(test_the_number_rises_with_the_address),
        cmocka_unit_test(test_the_number_stays_when_the_address_comes_back),
        cmocka_unit_test(test_the_number_rises_with_the_epoch_of_a_majority),
        cmocka_unit_test(test_an_epoch_does_not_fall),
        cmocka_unit_test(test_sentinels_of_different_epochs_do_not_agree),
        cmocka_unit_test(test_an_unknown_name_is_told_once),
        cmocka_unit_test(test_a_sentinel_has_one_voice_by_two_addresses),
        cmocka_unit_test(test_a_listed_sentinel_that_is_gone_counts_once),
        cmocka_unit_test(test_no_more_are_learned_than_there_is_room),
        cmocka_unit_test(test_sentinels_without_a_place_count_in_the_majority),
        cmocka_unit_test(test_old_lists_do_not_count),
        cmocka_unit_test(test_the_answer_of_a_former_sentinel_does_not_count_for_the_next),
        cmocka_unit_test(test_a_sentinel_is_forgotten_when_nobody_names_it),
        cmocka_unit_test(test_a_sentinel_is_not_forgotten_when_it_answers_or_is_listed),
        cmocka_unit_test(test_the_place_of_a_forgotten_sentinel_is_used_again),
        cmocka_unit_test(test_a_fresh_word_is_of_a_majority),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
