/* SPDX-License-Identifier: BSD-2-Clause */
/* For the tests of URLs: a URL that must be good, and its texts. */
#ifndef TESTS_UNIT_URL_PARSE_H
#define TESTS_UNIT_URL_PARSE_H

#include <string.h>

#include "store/url.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static inline struct dm_url *parse(const char *text)
{
    char reason[DM_REASON_ROOM] = "";
    struct dm_url *url = dm_url_parse(text, reason);

    if (!url)
        fail_msg("%s: %s", text, reason);
    return url;
}

static inline void assert_same_text(const char *got, const char *expected)
{
    if (!got || !expected)
        assert_ptr_equal(got, expected);
    else
        assert_string_equal(got, expected);
}

#endif
