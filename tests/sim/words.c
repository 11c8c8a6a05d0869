/* SPDX-License-Identifier: BSD-2-Clause */
#include "words.h"

#include <stdlib.h>
#include <string.h>

/* Reads "*3\r\n" or "$5\r\n" at *at; false if the line is not complete. */
static bool take_number(const struct bytes *in, size_t *at, long *ret_number)
{
    const char *end = *at < in->length ? memchr(in->data + *at, '\n', in->length - *at) : NULL;

    if (!end)
        return false;
    *ret_number = strtol(in->data + *at + 1, NULL, 10);
    *at = (size_t)(end - in->data) + 1;
    return true;
}

/* Returns the length of the command, 0 if the command is not complete. */
static size_t take_command(const struct bytes *in, size_t at, struct text words[WORDS_MAX], int *ret_count)
{
    size_t begin = at;
    long count, length;

    if (!take_number(in, &at, &count) || count > WORDS_MAX)
        return 0;
    for (int i = 0; i < count; i++) {
        if (!take_number(in, &at, &length) || at + (size_t)length + 2 > in->length)
            return 0;
        words[i] = (struct text){ in->data + at, (size_t)length };
        at += (size_t)length + 2;
    }
    *ret_count = (int)count;
    return at - begin;
}

static void end_words(const struct text *words, int count)
{
    for (int i = 0; i < count; i++)
        ((char *)words[i].bytes)[words[i].length] = '\0'; /* over the CR */
}

/* A command that kills its own connection is the last. */
void words_run(struct link *link, void (*run)(struct link *link, const struct text *words, int count))
{
    static struct text words[WORDS_MAX];
    size_t at = 0, length;
    int count;

    while (link->is_known_to_server && !link->is_waiting && (length = take_command(&link->in, at, words, &count)) > 0) {
        end_words(words, count);
        run(link, words, count);
        at += length;
    }
    memmove(link->in.data, link->in.data + at, link->in.length - at);
    link->in.length -= at;
}
