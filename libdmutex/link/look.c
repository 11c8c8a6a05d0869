/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/look.h"

void dm_look_begin(struct dm_look *look, int64_t now_ns)
{
    look->asked_ns = look->known_ns = now_ns;
}

void dm_look_end(struct dm_look *look)
{
    look->under_way = 0;
}

bool dm_look_is_due(const struct dm_look *look, int64_t pause_ns, int64_t now_ns)
{
    return now_ns >= look->asked_ns + pause_ns;
}

void dm_look_note_sent(struct dm_look *look, int64_t sent_ns)
{
    look->asked_ns = sent_ns;
    look->under_way++;
}

static bool is_known_for(const struct dm_look *look, int64_t most_ns, int64_t now_ns)
{
    return now_ns < look->known_ns + most_ns;
}

enum dm_look_verdict dm_look_at_request(const struct dm_look *look, int64_t now_ns)
{
    if (is_known_for(look, DM_LOOK_NS, now_ns))
        return DM_LOOK_SENDS;
    return look->under_way > 0 ? DM_LOOK_WAITS : DM_LOOK_FAILS;
}

enum dm_look_verdict dm_look_take(struct dm_look *look, enum dm_looked looked, int64_t sent_ns, bool has_waiting,
                                  int64_t most_ns, int64_t now_ns)
{
    look->under_way--;
    if (looked == DM_LOOKED_SAME)
        look->known_ns = sent_ns;
    else
        look->asked_ns = look->known_ns; /* the next request sends another look */
    if (looked == DM_LOOKED_SAME && is_known_for(look, most_ns, now_ns))
        return DM_LOOK_SENDS;
    if (looked == DM_LOOKED_OTHER || (has_waiting && look->under_way == 0))
        return DM_LOOK_FAILS;
    return DM_LOOK_WAITS;
}
