/* SPDX-License-Identifier: BSD-2-Clause */
/* link/reader: the limits of a reply, with any version of hiredis. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "link/pipe.h"
#include "stores/redis/wire/slots.h"

#define LEVELS_MOST 7 /* as in reader.c */

/* True if the reader takes the text as a reply, or as the beginning of one. */
static bool is_taken(const char *text, bool is_map)
{
    struct dm_reader reader;
    redisReply *reply = NULL;
    bool is_good;

    assert_true(dm_reader_begin(&reader));
    dm_reader_expect(&reader, is_map ? &dm_slots_summary : NULL);
    is_good = dm_reader_feed(&reader, text, strlen(text)) && dm_reader_next(&reader, &reply);
    if (reply)
        dm_reply_free(reply);
    dm_reader_end(&reader);
    return is_good;
}

/* `levels` arrays, each inside the one before; the innermost begins with `last`. */
static const char *nest(int levels, const char *last)
{
    static char text[128];
    size_t used = 0;

    for (int i = 1; i < levels; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "*1\r\n");
    snprintf(text + used, sizeof text - used, "%s", last);
    return text;
}

/* hiredis 0.14 takes a level more by itself, and from 1.0 on any number. */
static void test_arrays_are_refused_when_they_are_too_deep(void **state)
{
    static const char *const innermost[] = { "*1\r\n:1\r\n", "*0\r\n", "*1\r\n" };

    (void)state;
    for (size_t i = 0; i < sizeof innermost / sizeof innermost[0]; i++) {
        for (int is_map = 0; is_map < 2; is_map++) {
            assert_true(is_taken(nest(LEVELS_MOST, innermost[i]), is_map));
            assert_false(is_taken(nest(LEVELS_MOST + 1, innermost[i]), is_map));
        }
    }
}

/* An array that does not come first is as deep as the first one. */
static void test_arrays_are_refused_when_a_later_one_is_too_deep(void **state)
{
    static const char beginning[] = "*3\r\n*1\r\n:1\r\n*0\r\n";
    char text[160];

    (void)state;
    snprintf(text, sizeof text, "%s%s", beginning, nest(LEVELS_MOST - 1, "*1\r\n:1\r\n"));
    assert_true(is_taken(text, false));
    snprintf(text, sizeof text, "%s%s", beginning, nest(LEVELS_MOST, "*1\r\n:1\r\n"));
    assert_false(is_taken(text, false));
}

/* The reader refuses the other arrays of RESP3 as deep as it refuses arrays; hiredis 0.14 knows none. */
static void test_maps_and_sets_are_refused_when_they_are_too_deep(void **state)
{
    static const char *const innermost[] = { "%1\r\n:1\r\n:2\r\n", "~1\r\n:1\r\n", ">1\r\n:1\r\n" };

    (void)state;
    for (size_t i = 0; i < sizeof innermost / sizeof innermost[0]; i++)
        assert_false(is_taken(nest(LEVELS_MOST + 1, innermost[i]), false));
}

/* One slot for the map of a Cluster, between two for usual replies. */
static void push_three(struct dm_pipe *pipe)
{
    for (int i = 0; i < 3; i++) {
        struct dm_slot *slot = dm_pipe_take_slot(pipe);

        assert_non_null(slot);
        slot->summary = i == 1 ? &dm_slots_summary : NULL;
        dm_pipe_push(pipe, slot);
    }
}

/* True if the text is a reply, as by dm_pipe_read(). */
static bool is_next(struct dm_pipe *pipe, const char *text)
{
    redisReply *reply = NULL;
    bool is_good;

    dm_reader_expect(&pipe->reader, pipe->first->summary);
    is_good = dm_reader_feed(&pipe->reader, text, strlen(text)) && dm_pipe_next(pipe, &reply);
    if (reply) {
        dm_reply_free(reply);
        dm_pipe_spare_slot(pipe, dm_pipe_pop(pipe));
    }
    return is_good && reply;
}

static void free_slots(struct dm_pipe *pipe)
{
    struct dm_slot *slot;

    while ((slot = dm_pipe_pop(pipe)) != NULL)
        dm_pipe_spare_slot(pipe, slot);
    while ((slot = pipe->spare) != NULL) {
        pipe->spare = slot->next;
        free(slot);
    }
}

/* A server that may send one long reply, the map, does not get the room for another. */
static void test_a_long_reply_is_refused_when_it_is_not_the_map_that_was_asked_for(void **state)
{
    static struct dm_pipe pipe;
    char map[8 * 2000 + 16];
    size_t used = (size_t)snprintf(map, sizeof map, "*2000\r\n");

    (void)state;
    for (int i = 0; i < 2000; i++)
        used += (size_t)snprintf(map + used, sizeof map - used, ":1\r\n");
    dm_pipe_init(&pipe);
    assert_true(dm_pipe_begin(&pipe));
    push_three(&pipe);
    assert_true(is_next(&pipe, "+OK\r\n"));
    assert_true(is_next(&pipe, map));
    assert_false(is_next(&pipe, map));
    dm_pipe_close(&pipe);
    free_slots(&pipe);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arrays_are_refused_when_they_are_too_deep),
        cmocka_unit_test(test_arrays_are_refused_when_a_later_one_is_too_deep),
        cmocka_unit_test(test_maps_and_sets_are_refused_when_they_are_too_deep),
        cmocka_unit_test(test_a_long_reply_is_refused_when_it_is_not_the_map_that_was_asked_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
