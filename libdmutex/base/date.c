/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/date.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define SECONDS_PER_DAY 86400
#define NS_PER_MS 1000000

/* The period of the calendar. */
#define CYCLE_YEARS 400
#define CYCLE_DAYS 146097

static bool is_leap(int64_t year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % CYCLE_YEARS == 0;
}

static int days_of_year(int64_t year)
{
    return 365 + is_leap(year);
}

/* month: 1 to 12. */
static int days_of_month(int64_t year, int month)
{
    static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };

    return days[month - 1] + (month == 2 && is_leap(year));
}

void dm_date_write(const struct timespec *moment, char ret_text[DM_DATE_ROOM])
{
    int64_t second = moment->tv_sec > 0 ? moment->tv_sec : 0, day = second / SECONDS_PER_DAY;
    int64_t year = 1970 + day / CYCLE_DAYS * CYCLE_YEARS;
    int month = 1;

    day %= CYCLE_DAYS;
    second %= SECONDS_PER_DAY;
    for (; day >= days_of_year(year); year++)
        day -= days_of_year(year);
    for (; day >= days_of_month(year, month); month++)
        day -= days_of_month(year, month);
    snprintf(ret_text, DM_DATE_ROOM, "%04lld-%02d-%02dT%02d:%02d:%02d.%03dZ", (long long)year, month, (int)day + 1,
             (int)(second / 3600), (int)(second / 60 % 60), (int)(second % 60), (int)(moment->tv_nsec / NS_PER_MS));
}
