/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/identify.h"

void dm_identify_begin(struct dm_identify *identify, int64_t now_ns)
{
    identify->asked_ns = identify->known_ns = now_ns;
}

void dm_identify_end(struct dm_identify *identify)
{
    identify->under_way = 0;
}

bool dm_identify_is_due(const struct dm_identify *identify, int64_t pause_ns, int64_t now_ns)
{
    return now_ns >= identify->asked_ns + pause_ns;
}

void dm_identify_note_sent(struct dm_identify *identify, int64_t sent_ns)
{
    identify->asked_ns = sent_ns;
    identify->under_way++;
}

static bool is_known_for(const struct dm_identify *identify, int64_t most_ns, int64_t now_ns)
{
    return now_ns < identify->known_ns + most_ns;
}

enum dm_identify_verdict dm_identify_at_request(const struct dm_identify *identify, int64_t now_ns)
{
    if (is_known_for(identify, DM_IDENTIFY_NS, now_ns))
        return DM_IDENTIFY_SENDS;
    return identify->under_way > 0 ? DM_IDENTIFY_WAITS : DM_IDENTIFY_FAILS;
}

enum dm_identify_verdict dm_identify_take(struct dm_identify *identify, enum dm_identified identified, int64_t sent_ns,
                                          bool has_waiting, int64_t most_ns, int64_t now_ns)
{
    identify->under_way--;
    if (identified == DM_IDENTIFIED_SAME)
        identify->known_ns = sent_ns;
    else
        identify->asked_ns = identify->known_ns; /* the next request sends another check */
    if (identified == DM_IDENTIFIED_SAME && is_known_for(identify, most_ns, now_ns))
        return DM_IDENTIFY_SENDS;
    if (identified == DM_IDENTIFIED_OTHER || (has_waiting && identify->under_way == 0))
        return DM_IDENTIFY_FAILS;
    return DM_IDENTIFY_WAITS;
}
