/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What nobody needs any more: values of processes that died with nobody to notice, and of names out of use.
 *
 * S9. A session whose value is an hour old, and a lease, becomes dead, as if somebody had watched it: an idle process
 *     does not beat, and finds out at its next lock.  A dead one is deleted after a day.  That is always safe, because
 *     nobody concludes anything from a missing session.
 * N6. A name is deleted if it is free and clean, nobody sleeps in it, and it was not written for a week: "absent" is
 *     the one version that repeats, so nothing that was made for it may come so late.
 * C5. A binding is deleted if it was not written for a week and nobody sleeps on the condition.  Who falls asleep just
 *     then finds the binding changed at the next poll, and wakes up.
 * N11. A deleted name begins with the store's clock, so it is deleted only if that gives a later token.  We ask for a
 *     week's distance: the clock may be set back.
 */
#ifndef DM_REGISTERS_SWEEP_H
#define DM_REGISTERS_SWEEP_H

#include "registers/value.h"

enum dm_reg_fate { DM_REG_KEEP, DM_REG_KILL, DM_REG_DELETE };

/* age_ms: the value is at least so old; -1: not known.  now_us: since 1970, by the store's clock or else by ours. */
enum dm_reg_fate dm_reg_sweep_session(const struct dm_reg_session_value *value, int64_t age_ms, int64_t now_us);

/* clock_us: the store's own clock, since 1970; 0: it does not tell. */
enum dm_reg_fate dm_reg_sweep_name(const struct dm_reg_name_value *value, int64_t age_ms, int64_t clock_us);

/* mutex: the value of the mutex that the condition is bound to; NULL: absent.  key: that of the binding. */
enum dm_reg_fate dm_reg_sweep_binding(const struct dm_reg_name_value *mutex, const char *key, int64_t age_ms);

/* ---- versions that were seen before -------------------------------------------------------- */

/* Where the store does not know ages, a value is as old as our memory of its version. */
#define DM_REG_SWEEP_SEEN 512

struct dm_reg_sweep_seen {
    int count;
    struct {
        uint64_t key; /* a hash */
        struct dm_reg_version version;
        int64_t since_ns, seen_ns; /* when this version was seen first, and last */
    } items[DM_REG_SWEEP_SEEN];
};

/* For how long we know the version of this key; 0: for the first time.  What was not seen for longest is forgotten. */
int64_t dm_reg_sweep_age_ms(struct dm_reg_sweep_seen *seen, const char *key, const struct dm_reg_version *version,
                            int64_t now_ns);

#endif
