/* SPDX-License-Identifier: BSD-2-Clause */
/* stores/redis/sentinel/council: when a word of the sentinels counts, for how long, and who has a vote. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "random.h"
#include "stores/redis/sentinel/council.h"

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

static void clear(void)
{
    dm_council_clear(&council);
    council = (struct dm_council){ .fresh_ns = FRESH };
}

/* All listed; the ids are known to be 0, 1, ... */
static void begin(int count)
{
    clear();
    for (int i = 0; i < count; i++)
        dm_council_add_listed(&council);
    for (int i = 0; i < count; i++)
        dm_council_name(&council, i, id_of(i));
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

/*
 * A sentinel that alternates between masters is heard only from time to time; otherwise it could close each connection.
 */
static void test_a_sentinel_that_flips_makes_no_doubt_for_a_while(void **state)
{
    (void)state;
    begin(3);
    says(0, &here, 10);
    says(1, &here, 10);
    says(2, &here, 10);
    assert_int_equal(says(2, &there, 11), DM_COUNCIL_DOUBT);
    says(0, &here, 20);
    assert_int_equal(says(1, &here, 20), DM_COUNCIL_WORD);
    says(2, &here, 21);
    assert_int_equal(says(2, &there, 22), DM_COUNCIL_SAME);
    assert_int_equal(says(0, &there, 23), DM_COUNCIL_DOUBT); /* another one */
    assert_int_equal(says(2, &there, 30), DM_COUNCIL_SAME);
    assert_int_equal(says(0, &there, 30), DM_COUNCIL_WORD);
}

/* A majority changes its mind while neither may make a doubt: links to the old master close all the same. */
static void test_another_master_is_doubt_before_it_is_a_word(void **state)
{
    (void)state;
    begin(3);
    council.opinions[0].calm_until_ns = council.opinions[1].calm_until_ns = 1000;
    says(0, &here, 10);
    assert_int_equal(says(1, &here, 10), DM_COUNCIL_WORD);
    assert_int_equal(says(0, &there, 20), DM_COUNCIL_SAME);
    assert_int_equal(says(1, &there, 20), DM_COUNCIL_DOUBT);
    says(0, &there, 30);
    assert_int_equal(says(1, &there, 30), DM_COUNCIL_WORD);
}

/* A sentinel that keeps naming another master has been heard, and is outvoted. */
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
static void test_a_sentinel_that_keeps_naming_other_masters_is_outvoted(void **state)
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

/* If the same address comes back, it keeps its number: a connection that has stayed is to the same server. */
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

/* If one sentinel of a majority reports an earlier epoch, or none, the later epoch is not taken back. */
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
 * others still reports the first promotion.
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

/* If nobody has the right to ask for the epoch, one sentinel that reports one starts no grace. */
static void test_one_sentinel_makes_no_epoch(void **state)
{
    (void)state;
    begin(3);
    says_of(0, &here, 0, 10);
    assert_int_equal(says_of(2, &here, 1000000, 10), DM_COUNCIL_SAME);
    assert_int_equal(says_of(1, &here, 0, 10), DM_COUNCIL_WORD);
    assert_int_equal(says_of(2, &here, 2000000, 11), DM_COUNCIL_SAME);
    assert_int_equal(council.word.epoch, 0);
    assert_int_equal(council.number, 1);
}

static void test_an_unknown_name_is_reported_once(void **state)
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

/* ---- learned sentinels ------------------------------------------------------------------- */

static struct dm_other other_at(int id, const char *host)
{
    return (struct dm_other){ .id = id_of(id), .host = host, .port = "26379" };
}

/* The sentinel of that id, where everybody else says that it is. */
static struct dm_other other_of(int id)
{
    return other_at(id, "10.0.1.1");
}

/* Sentinel `index` names the sentinels first to last by their ids, except itself, `times` times. */
static void names(int index, int first, int last, int times)
{
    struct dm_other others[DM_COUNCIL_MOST + 10];
    int count = 0;

    for (int i = first; i <= last; i++) {
        if (i != index)
            others[count++] = other_of(i);
    }
    while (times-- > 0)
        dm_council_take_list(&council, index, others, count);
}

/* Returns the index; -1: not learned. */
static int learn(const struct dm_other *other)
{
    int place = dm_council_place_for(&council, other);

    if (place >= 0)
        dm_council_learn(&council, place, other);
    return place;
}

static int learn_id(int id)
{
    struct dm_other other = other_of(id);

    return learn(&other);
}

/* The first `listed` of `all` are in the URL; each knows all. */
static void begin_with_learned(int listed, int all)
{
    begin(listed);
    for (int i = 0; i < listed; i++)
        names(i, 0, all - 1, 1);
    for (int i = listed; i < all; i++)
        assert_int_equal(learn_id(i), i);
}

static void test_a_learned_sentinel_votes_when_the_only_listed_one_names_it(void **state)
{
    (void)state;
    begin_with_learned(1, 3);
    assert_int_equal(dm_council_majority(&council), 2);
    assert_int_equal(says(0, &here, 10), DM_COUNCIL_SAME);
    assert_int_equal(says(2, &here, 10), DM_COUNCIL_WORD);
}

/* One of three lists twelve others of its own: the majority stays as it was. */
static void test_no_sentinel_is_learned_when_only_a_minority_names_it(void **state)
{
    (void)state;
    begin_with_learned(3, 3);
    names(2, 0, 14, 1000);
    for (int i = 3; i < 15; i++)
        assert_int_equal(learn_id(i), -1);
    assert_int_equal(dm_council_size(&council), 3);
    says(2, &there, 10);
    assert_int_equal(says(0, &here, 10), DM_COUNCIL_SAME);
    assert_int_equal(says(1, &here, 10), DM_COUNCIL_WORD);
    names(1, 0, 3, 1);
    assert_int_equal(learn_id(3), 3);
    assert_int_equal(dm_council_size(&council), 4);
}

/* A list of a learned one makes nobody a sentinel. */
static void test_lists_of_learned_sentinels_are_ignored(void **state)
{
    (void)state;
    begin_with_learned(1, 3);
    names(1, 0, 8, 1000);
    names(2, 0, 8, 1000);
    assert_int_equal(learn_id(5), -1);
    assert_int_equal(dm_council_size(&council), 3);
}

/* The id is known to all, and the address is the liar's. */
static void test_an_address_must_be_named_by_a_majority_as_the_id_must(void **state)
{
    struct dm_other moved = other_at(3, "10.6.6.6"), lists[] = { other_of(0), other_of(1), moved };

    (void)state;
    begin_with_learned(3, 4);
    dm_council_take_list(&council, 2, lists, 3);
    assert_int_equal(learn(&moved), -1);
    dm_council_take_list(&council, 1, lists, 3);
    assert_int_equal(learn(&moved), 4);
    assert_int_equal(dm_council_size(&council), 4); /* the same sentinel at two places */
    says(0, &here, 10);
    says(3, &here, 10);
    assert_int_equal(says(4, &here, 10), DM_COUNCIL_SAME);
    assert_int_equal(says(2, &here, 10), DM_COUNCIL_WORD);
}

/* Listed by name and learned by address: one sentinel, with one vote. */
static void test_a_sentinel_has_one_vote_by_two_addresses(void **state)
{
    (void)state;
    clear();
    for (int i = 0; i < 3; i++)
        dm_council_add_listed(&council);
    dm_council_name(&council, 0, id_of(0));
    dm_council_name(&council, 1, id_of(1));
    names(0, 1, 2, 1);
    names(1, 0, 2, 1);
    assert_int_equal(learn_id(2), 3);
    assert_int_equal(dm_council_size(&council), 3); /* the third listed one is perhaps the learned one */
    dm_council_name(&council, 2, id_of(2));
    assert_int_equal(dm_council_size(&council), 3);
    says(2, &here, 10);
    assert_int_equal(says(3, &here, 10), DM_COUNCIL_SAME);
    assert_int_equal(dm_council_heard(&council, 10), 1);
    assert_int_equal(says(0, &here, 10), DM_COUNCIL_WORD);
}

/* By two names, or by one name that leads to several. */
static void test_a_sentinel_that_is_listed_twice_has_one_vote(void **state)
{
    (void)state;
    begin(3);
    dm_council_name(&council, 1, id_of(0));
    says(0, &here, 10);
    assert_int_equal(says(1, &here, 10), DM_COUNCIL_SAME);
    assert_int_equal(says(2, &here, 10), DM_COUNCIL_WORD);
}

/* The liar is at the address of the third, which the others know, and says that it has another id, or another's id. */
static void test_a_sentinel_with_two_ids_has_one_vote(void **state)
{
    (void)state;
    for (int told = 0; told < 10; told += 9) {
        begin(3);
        dm_council_name(&council, 2, id_of(told));
        for (int i = 0; i < 3; i++)
            names(i, 0, 2, 1);
        assert_int_equal(learn_id(2), 3);
        assert_int_equal(dm_council_size(&council), 3);
        says(2, &there, 10);
        assert_int_equal(says(3, &there, 10), DM_COUNCIL_SAME);
        says(0, &here, 10);
        assert_int_equal(says(1, &here, 10), DM_COUNCIL_WORD);
    }
}

/* Another sentinel came to the address of a learned one: nobody has named it. */
static void test_a_stranger_at_the_place_of_a_learned_sentinel_has_no_vote(void **state)
{
    (void)state;
    begin_with_learned(1, 3);
    says(0, &here, 10);
    dm_council_name(&council, 2, id_of(7));
    assert_int_equal(says(2, &here, 10), DM_COUNCIL_SAME);
    assert_false(dm_council_is_heard(&council, 2, 10));
    dm_council_name(&council, 2, id_of(2));
    assert_int_equal(says(2, &here, 20), DM_COUNCIL_WORD);
}

/* A listed sentinel that is gone, but that the others still know, counts once: one of three may be gone. */
static void test_a_listed_sentinel_that_is_gone_counts_once(void **state)
{
    (void)state;
    clear();
    for (int i = 0; i < 3; i++)
        dm_council_add_listed(&council);
    dm_council_name(&council, 0, id_of(0));
    dm_council_name(&council, 1, id_of(1));
    names(0, 0, 2, 1);
    names(1, 0, 2, 1);
    assert_int_equal(learn_id(2), 3);
    assert_int_equal(dm_council_majority(&council), 2);
    says(0, &here, 10);
    assert_int_equal(says(1, &here, 10), DM_COUNCIL_WORD);
}

/* An operator replaces the sentinels one by one, and gives SENTINEL RESET to those that are there. */
static void test_a_process_follows_when_sentinels_are_replaced_one_by_one(void **state)
{
    (void)state;
    begin_with_learned(3, 3);
    names(0, 0, 1, 1); /* 3 instead of 2 */
    names(1, 0, 1, 1);
    for (int i = 0; i < 2; i++) {
        struct dm_other others[] = { other_of(1 - i), other_of(3) };

        dm_council_take_list(&council, i, others, 2);
    }
    assert_int_equal(learn_id(3), 3);
    assert_int_equal(dm_council_size(&council), 3);
    says(0, &here, 10);
    assert_int_equal(says(3, &here, 10), DM_COUNCIL_WORD);
    names(0, 3, 4, 1); /* 4 instead of 1: one of three listed ones is left, and is no majority */
    assert_int_equal(learn_id(4), -1);
    assert_int_equal(says(0, &here, 20), DM_COUNCIL_SAME);
    assert_true(dm_council_is_fresh(&council, council.number, 10 + FRESH));
}

static void test_no_more_are_learned_than_there_is_room(void **state)
{
    (void)state;
    begin(1);
    names(0, 1, DM_COUNCIL_MOST, 1);
    for (int i = 1; i < DM_COUNCIL_MOST; i++)
        assert_int_equal(learn_id(i), i);
    assert_int_equal(learn_id(DM_COUNCIL_MOST), -1);
    assert_int_equal(dm_council_majority(&council), (DM_COUNCIL_MOST + 1) / 2 + 1);
}

/* There are 17, of which two have no place: a majority is 9, however few are known.  A single list says nothing. */
static void test_sentinels_without_a_place_count_in_the_majority(void **state)
{
    (void)state;
    begin(3);
    names(0, 0, DM_COUNCIL_MOST + 1, 1);
    names(1, 0, 2, 1);
    assert_int_equal(dm_council_majority(&council), 2);
    names(1, 0, DM_COUNCIL_MOST + 1, 1);
    for (int i = 3; i < DM_COUNCIL_MOST; i++)
        assert_int_equal(learn_id(i), i);
    for (int i = 0; i < 8; i++)
        assert_int_equal(says(i, &here, 10), DM_COUNCIL_SAME);
    assert_int_equal(dm_council_majority(&council), 9);
    assert_int_equal(says(8, &here, 10), DM_COUNCIL_WORD);
}

/* Another sentinel answers at an address, for example because a name was moved: it has not voted yet. */
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

/* After SENTINEL RESET, and only then: sentinels name the dead ones that they know. */
static void test_a_sentinel_is_forgotten_when_no_majority_names_it(void **state)
{
    (void)state;
    begin_with_learned(3, 5);
    for (int i = 0; i < 1000; i++) {
        names(0, 0, 3, 1);
        names(1, 0, 4, 1); /* not reset yet */
    }
    assert_int_equal(dm_council_size(&council), 5);
    names(1, 0, 3, 1);
    assert_int_equal(dm_council_size(&council), 5); /* a list or two prove nothing: it is soon found again */
    names(0, 0, 3, 1000);
    assert_true(dm_council_is_forgotten(&council, 4));
    assert_int_equal(dm_council_size(&council), 4); /* the third has not been reset, or lies */
    names(0, 0, 4, 1);
    assert_false(dm_council_is_forgotten(&council, 4));
    assert_int_equal(dm_council_size(&council), 5);
}

/* It may have been taken out of the group, and belong to somebody else by now. */
static void test_a_sentinel_that_nobody_names_has_no_vote_though_it_answers(void **state)
{
    (void)state;
    begin_with_learned(1, 3);
    names(0, 1, 1, 1000);
    assert_false(dm_council_is_forgotten(&council, 0));
    assert_true(dm_council_is_forgotten(&council, 2));
    says(0, &here, 10);
    assert_int_equal(says(2, &here, 10), DM_COUNCIL_SAME);
    assert_int_equal(says(1, &here, 10), DM_COUNCIL_WORD);
}

static void test_the_place_of_a_forgotten_sentinel_is_used_again(void **state)
{
    (void)state;
    begin_with_learned(1, DM_COUNCIL_MOST);
    says(7, &there, 1);
    assert_int_equal(learn_id(DM_COUNCIL_MOST), -1);
    names(0, 8, DM_COUNCIL_MOST, 1000);
    assert_int_equal(learn_id(DM_COUNCIL_MOST), 1);
    assert_false(dm_council_is_heard(&council, 1, 1));
    assert_int_equal(dm_council_size(&council), DM_COUNCIL_MOST - 6);
}

/* ---- any order of answers ---------------------------------------------------------------- */

/* When each sentinel was last asked with that answer, kept apart from the council; 0: never. */
static int64_t said[DM_COUNCIL_MOST][3];

static int agreeing(int count, int64_t now, unsigned master)
{
    int agree = 0;

    for (int i = 0; i < count; i++)
        agree += said[i][master] && said[i][master] + FRESH >= now;
    return agree;
}

/* Whatever was said in whatever order, a word that counts is that of a majority who were asked recently. */
static void test_a_fresh_word_needs_a_majority(void **state)
{
    const struct dm_master *const masters[] = { &here, &there, &none };
    long fresh = 0;

    (void)state;
    for (int round = 0; round < rounds(2000); round++) {
        int count = 1 + (int)random_below(7);
        int64_t now = 1;

        begin(count);
        memset(said, 0, sizeof said);
        for (int step = 0; step < 60; step++) {
            int index = (int)random_below((unsigned)count);
            unsigned master = random_below(20) < 15 ? (unsigned)round % 2 : random_below(3);
            int64_t asked = now;

            now += random_below(FRESH / 2);
            said[index][master] = asked;
            dm_council_take(&council, index, masters[master], asked, now);
            if (random_below(3) == 0)
                dm_council_look(&council, now);
            if (!dm_council_is_fresh(&council, council.number, now))
                continue;
            fresh++;
            assert_true(agreeing(count, now, strcmp(council.word.host, here.host) ? 1 : 0) > count / 2);
        }
    }
    assert_true(fresh > 10000); /* else the test says nothing */
}

/* ---- liars ------------------------------------------------------------------------------- */

#define GROUP 5 /* ids 0 to 4 are sentinels; 5 to 9 are made up */
#define TURNS 40

/* What any sentinel may say of others; a liar says anything. */
static void tell_lists(int listed, int liars)
{
    struct dm_other others[GROUP * 2];
    int index = (int)random_below((unsigned)listed), count = 0;

    if (index >= liars) {
        names(index, 0, GROUP - 1, 1);
    } else {
        for (int i = 0; i < GROUP * 2; i++) {
            if (random_below(2))
                others[count++] = other_at((int)random_below(GROUP * 2), random_below(2) ? "10.0.1.1" : "10.6.6.6");
        }
        dm_council_take_list(&council, index, others, count);
    }
    for (int id = 0; id < GROUP * 2; id++) {
        struct dm_other liar = other_at(id, "10.6.6.6");

        learn(&liar);
        learn_id(id);
    }
}

/* Whether a liar answers at that index: it is a liar's, or one of liars only. */
static bool is_liars(int index, int listed, int liars)
{
    const struct dm_opinion *opinion = &council.opinions[index];
    int id = index < listed ? index : atoi(opinion->id);

    return id < liars || (index >= listed && strcmp(opinion->named.host, "10.6.6.6") == 0);
}

/* True if the answer is part of the truth. */
static void answer(int index, int listed, int liars, int64_t now)
{
    static const struct dm_master *const masters[] = { &here, &there, &elsewhere, &none };

    if (is_liars(index, listed, liars)) {
        if (random_below(3) == 0)
            dm_council_name(&council, index, id_of((int)random_below(GROUP * 2)));
        says_of(index, masters[random_below(4)], random_below(3) ? random_below(9) : 5, now);
    } else {
        dm_council_name(&council, index, index < listed ? id_of(index) : council.opinions[index].id);
        says_of(index, &here, 5, now);
    }
}

/*
 * A minority of the listed says anything: ids, lists, masters, epochs, in any order.  The word is never theirs, and
 * there is a word as long as the others answer.
 */
static void test_a_minority_of_liars_neither_decides_nor_stops_the_rest(void **state)
{
    (void)state;
    for (int round = 0; round < rounds(3000); round++) {
        int listed = 3 + (int)random_below(GROUP - 2), liars = (listed - 1) / 2;
        int64_t now = 1;
        int with_word = 0;

        begin(listed);
        for (int step = 0; step < 200; step++) {
            now++;
            if (random_below(3) == 0)
                tell_lists(listed, liars);
            else
                answer((int)random_below((unsigned)council.count), listed, liars, now);
            if (!dm_council_is_fresh(&council, council.number, now))
                continue;
            assert_string_equal(council.word.host, here.host);
            assert_int_equal(council.word.epoch, 5);
        }
        now += 3 * FRESH;
        for (int again = 0; again < 40 * GROUP; again++)
            tell_lists(listed, liars);
        for (int turn = 0; turn < TURNS; turn++, now++) {
            for (int i = 0; i < council.count; i++)
                answer(i, listed, liars, now);
            with_word += dm_council_is_fresh(&council, council.number, now);
        }
        assert_true(with_word >= TURNS - council.count); /* each place of a liar may make a doubt once */
    }
    clear();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_word_counts_from_a_majority_on),
        cmocka_unit_test(test_a_word_counts_from_the_oldest_question_of_the_majority),
        cmocka_unit_test(test_a_late_answer_counts_from_its_question),
        cmocka_unit_test(test_one_other_answer_is_doubt),
        cmocka_unit_test(test_a_sentinel_that_flips_makes_no_doubt_for_a_while),
        cmocka_unit_test(test_another_master_is_doubt_before_it_is_a_word),
        cmocka_unit_test(test_a_sentinel_that_differs_for_long_is_outvoted),
        cmocka_unit_test(test_a_sentinel_that_keeps_naming_other_masters_is_outvoted),
        cmocka_unit_test(test_the_number_rises_with_the_address),
        cmocka_unit_test(test_the_number_stays_when_the_address_comes_back),
        cmocka_unit_test(test_the_number_rises_with_the_epoch_of_a_majority),
        cmocka_unit_test(test_an_epoch_does_not_fall),
        cmocka_unit_test(test_sentinels_of_different_epochs_do_not_agree),
        cmocka_unit_test(test_one_sentinel_makes_no_epoch),
        cmocka_unit_test(test_an_unknown_name_is_reported_once),
        cmocka_unit_test(test_a_learned_sentinel_votes_when_the_only_listed_one_names_it),
        cmocka_unit_test(test_no_sentinel_is_learned_when_only_a_minority_names_it),
        cmocka_unit_test(test_lists_of_learned_sentinels_are_ignored),
        cmocka_unit_test(test_an_address_must_be_named_by_a_majority_as_the_id_must),
        cmocka_unit_test(test_a_sentinel_has_one_vote_by_two_addresses),
        cmocka_unit_test(test_a_sentinel_that_is_listed_twice_has_one_vote),
        cmocka_unit_test(test_a_sentinel_with_two_ids_has_one_vote),
        cmocka_unit_test(test_a_stranger_at_the_place_of_a_learned_sentinel_has_no_vote),
        cmocka_unit_test(test_a_listed_sentinel_that_is_gone_counts_once),
        cmocka_unit_test(test_a_process_follows_when_sentinels_are_replaced_one_by_one),
        cmocka_unit_test(test_no_more_are_learned_than_there_is_room),
        cmocka_unit_test(test_sentinels_without_a_place_count_in_the_majority),
        cmocka_unit_test(test_the_answer_of_a_former_sentinel_does_not_count_for_the_next),
        cmocka_unit_test(test_a_sentinel_is_forgotten_when_no_majority_names_it),
        cmocka_unit_test(test_a_sentinel_that_nobody_names_has_no_vote_though_it_answers),
        cmocka_unit_test(test_the_place_of_a_forgotten_sentinel_is_used_again),
        cmocka_unit_test(test_a_fresh_word_needs_a_majority),
        cmocka_unit_test(test_a_minority_of_liars_neither_decides_nor_stops_the_rest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
