/* SPDX-License-Identifier: BSD-2-Clause */
/* For the tests of URLs: a URL that must be good, and its texts. */
#ifndef TESTS_UNIT_URL_PARSE_H
#define TESTS_UNIT_URL_PARSE_H

#include <string.h>

#include "config/url.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static inline struct dm_url *parse(const char *text)
{
    char reason[DM_REASON_ROOM] = "";
    struct dm_url *url = dm_url_parse(text, reason);

    if (!url)
        fail_msg("%s: %s", text, reason);
    return url;
}

/* A URL that is refused, and a part of the reason. */
struct refusal {
    const char *text, *words;
};

static inline void assert_refused(const struct refusal *odd, size_t count)
{
    char reason[DM_REASON_ROOM];

    for (size_t i = 0; i < count; i++) {
        if (dm_url_parse(odd[i].text, reason))
            fail_msg("accepted: \"%s\"", odd[i].text);
        if (!strstr(reason, odd[i].words))
            fail_msg("\"%s\" has the reason \"%s\"", odd[i].text, reason);
    }
}

static inline void assert_same_text(const char *got, const char *expected)
{
    if (!got || !expected)
        assert_ptr_equal(got, expected);
    else
        assert_string_equal(got, expected);
}

#endif
