/* SPDX-License-Identifier: BSD-2-Clause */
#include "stores/memcached/answer.h"

#include <stdbool.h>
#include <string.h>

/* Digits alone, up to a blank or the end.  False for anything else, and for a number above `most`. */
static bool read_number(const char *text, uint64_t most, uint64_t *ret_number)
{
    uint64_t number = 0;
    const char *at = text;

    for (; *at >= '0' && *at <= '9'; at++) {
        uint64_t digit = (uint64_t)(*at - '0');

        if (number > (most - digit) / 10)
            return false;
        number = number * 10 + digit;
    }
    *ret_number = number;
    return at > text && (*at == '\0' || *at == ' ');
}

/* The first two words of a line are never flags. */
static uint64_t find_cas(const char *line)
{
    const char *flag = strstr(line, " c");
    uint64_t cas = 0;

    return flag && read_number(flag + 2, UINT64_MAX, &cas) ? cas : 0;
}

static bool begins_with(const char *line, const char *word)
{
    size_t length = strlen(word);

    return strncmp(line, word, length) == 0 && (line[length] == '\0' || line[length] == ' ');
}

static enum dm_memcached_code code_of(const char *line)
{
    static const struct {
        const char *word;
        enum dm_memcached_code code;
    } words[] = {
        { "VA", DM_MEMCACHED_VALUE },
        { "HD", DM_MEMCACHED_DONE },
        { "STORED", DM_MEMCACHED_DONE },
        { "EN", DM_MEMCACHED_ABSENT },
        { "NF", DM_MEMCACHED_ABSENT },
        { "NOT_FOUND", DM_MEMCACHED_ABSENT },
        { "EX", DM_MEMCACHED_OTHER },
        { "EXISTS", DM_MEMCACHED_OTHER },
        { "NOT_STORED", DM_MEMCACHED_OTHER },
        { "ERROR", DM_MEMCACHED_REFUSED },
        { "CLIENT_ERROR", DM_MEMCACHED_REFUSED },
        { "SERVER_ERROR", DM_MEMCACHED_REFUSED },
        { "STAT", DM_MEMCACHED_TEXT },
        { "END", DM_MEMCACHED_TEXT },
        { "VERSION", DM_MEMCACHED_TEXT },
    };

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (begins_with(line, words[i].word))
            return words[i].code;
    }
    return DM_MEMCACHED_BAD;
}

/* The value comes after the line, and a line end after the value. */
static enum dm_memcached_code read_value(const char *bytes, size_t size, size_t most,
                                         struct dm_memcached_answer *answer)
{
    uint64_t length;

    if (strlen(answer->line) < 4 || !read_number(answer->line + 3, most, &length))
        return DM_MEMCACHED_BAD;
    if (size - answer->length < length + 2)
        return DM_MEMCACHED_MORE;
    answer->value = bytes + answer->length;
    answer->size = (size_t)length;
    answer->length += answer->size + 2;
    return memcmp(answer->value + length, "\r\n", 2) == 0 ? DM_MEMCACHED_VALUE : DM_MEMCACHED_BAD;
}

void dm_memcached_answer_read(const char *bytes, size_t size, size_t most, struct dm_memcached_answer *ret_answer)
{
    size_t within = size < DM_MEMCACHED_LINE_MOST ? size : DM_MEMCACHED_LINE_MOST;
    const char *end = within ? memchr(bytes, '\n', within) : NULL;

    ret_answer->value = NULL;
    ret_answer->size = ret_answer->length = 0;
    ret_answer->line[0] = '\0';
    ret_answer->cas = 0;
    ret_answer->code = within < DM_MEMCACHED_LINE_MOST ? DM_MEMCACHED_MORE : DM_MEMCACHED_BAD;
    if (!end)
        return;
    ret_answer->code = DM_MEMCACHED_BAD;
    if (end == bytes || end[-1] != '\r' || memchr(bytes, '\0', (size_t)(end - bytes)))
        return;
    ret_answer->length = (size_t)(end - bytes) + 1;
    memcpy(ret_answer->line, bytes, ret_answer->length - 2);
    ret_answer->line[ret_answer->length - 2] = '\0';
    ret_answer->code = code_of(ret_answer->line);
    if (ret_answer->code == DM_MEMCACHED_VALUE)
        ret_answer->code = read_value(bytes, size, most, ret_answer);
    if (ret_answer->code == DM_MEMCACHED_VALUE || ret_answer->code == DM_MEMCACHED_DONE)
        ret_answer->cas = find_cas(ret_answer->line);
}
