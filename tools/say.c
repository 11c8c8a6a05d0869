/* SPDX-License-Identifier: BSD-2-Clause */
#include "say.h"

#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

void say(const char *format, ...)
{
    char line[2048];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    dm_text_clean(line);
    fprintf(stderr, "dmutex: %s\n", line);
}

bool say_has_room(void)
{
    struct pollfd room = { .fd = STDERR_FILENO, .events = POLLOUT };

    return poll(&room, 1, 0) > 0;
}

/* A name that does not fit is cut.  The library's longest name, 200 bytes, always fits. */
const char *say_name(const char *name, char ret_text[SAY_NAME_ROOM])
{
    const char *from = name;
    size_t used = 0;

    while (*from && used + 4 * 4 < SAY_NAME_ROOM) {
        size_t length = dm_text_printable(from);
        bool is_hidden = *from == ' ' && (from == name || !from[1]);

        if (length && *from != '\\' && !is_hidden) {
            memcpy(ret_text + used, from, length);
            used += length;
            from += length;
        } else {
            used += (size_t)sprintf(ret_text + used, "\\x%02x", (unsigned char)*from++);
        }
    }
    ret_text[used] = '\0';
    return ret_text;
}

const char *say_time(int64_t ms, char ret_text[SAY_TIME_ROOM])
{
    int64_t seconds = ms / 1000, minutes = seconds / 60, hours = minutes / 60;

    if (seconds < 60)
        snprintf(ret_text, SAY_TIME_ROOM, "%" PRId64 ".%" PRId64 " s", seconds, ms % 1000 / 100);
    else if (minutes < 60)
        snprintf(ret_text, SAY_TIME_ROOM, "%" PRId64 " min %" PRId64 " s", minutes, seconds % 60);
    else if (hours < 48)
        snprintf(ret_text, SAY_TIME_ROOM, "%" PRId64 " h %" PRId64 " min", hours, minutes % 60);
    else
        snprintf(ret_text, SAY_TIME_ROOM, "%" PRId64 " d %" PRId64 " h", hours / 24, hours % 24);
    return ret_text;
}

const char *say_short_time(int64_t ms, char ret_text[SAY_TIME_ROOM])
{
    int64_t seconds = ms / 1000, minutes = seconds / 60, hours = minutes / 60, days = hours / 24;

    if (seconds < 60)
        snprintf(ret_text, SAY_TIME_ROOM, "%" PRId64 ".%" PRId64 "s", seconds, ms % 1000 / 100);
    else if (minutes < 60)
        snprintf(ret_text, SAY_TIME_ROOM, "%" PRId64 "m%02" PRId64 "s", minutes, seconds % 60);
    else if (hours < 48)
        snprintf(ret_text, SAY_TIME_ROOM, "%" PRId64 "h%02" PRId64 "m", hours, minutes % 60);
    else if (days < 100)
        snprintf(ret_text, SAY_TIME_ROOM, "%" PRId64 "d%02" PRId64 "h", days, hours % 24);
    else
        snprintf(ret_text, SAY_TIME_ROOM, "%" PRId64 "d", days);
    return ret_text;
}

static bool is_begin_of_character(char byte)
{
    return ((unsigned char)byte & 0xC0) != 0x80;
}

int say_width(const char *text)
{
    int count = 0;

    for (; *text; text++)
        count += is_begin_of_character(*text);
    return count;
}

/* How many bytes the first `characters` characters take. */
static int bytes_of(const char *text, int characters)
{
    int bytes = 0;

    while (text[bytes] && (characters > 0 || !is_begin_of_character(text[bytes])))
        characters -= is_begin_of_character(text[bytes++]);
    return bytes;
}

void say_cell(const char *text, int least, int most)
{
    int width = say_width(text);
    bool is_cut = width > most;
    int shown = is_cut ? most : width;

    printf("%.*s%s%*s", bytes_of(text, is_cut ? most - 1 : width), text, is_cut ? "~" : "",
           (least > shown ? least - shown : 0) + 2, "");
}

bool say_is_screen(FILE *to)
{
    const char *term = getenv("TERM");

    return isatty(fileno(to)) && term && strcmp(term, "dumb") != 0;
}
