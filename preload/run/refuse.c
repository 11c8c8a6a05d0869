/* SPDX-License-Identifier: BSD-2-Clause */
#include "refuse.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "shared/text.h"

enum say_level say_level = SAY_WARNINGS;

/* `error` may be NULL, as in GLib's functions, if the caller only wants the result. */
bool refuse(GError **error, enum refuse_status status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    if (error)
        *error = g_error_new_valist(g_quark_from_static_string("dmutex-run"), status, format, args);
    va_end(args);
    return false;
}

char *say_clean(const char *words)
{
    size_t room = strlen(words) + 1;
    struct text text = text_in(g_malloc(room), room);

    text_add_clean(&text, words);
    return text.bytes;
}

/* Cleaned, because a message may quote a path, a file or a server, and goes to a terminal. */
static void G_GNUC_PRINTF(2, 0) say(const char *kind, const char *format, va_list args)
{
    g_autofree char *sentence = g_strdup_vprintf(format, args), *clean = say_clean(sentence);

    fprintf(stderr, "dmutex-run: %s%s\n", kind, clean);
}

void say_error(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say("", format, args);
    va_end(args);
}

void say_warning(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    if (say_level >= SAY_WARNINGS)
        say("warning: ", format, args);
    va_end(args);
}

void say_note(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    if (say_level >= SAY_ALL)
        say("", format, args);
    va_end(args);
}
