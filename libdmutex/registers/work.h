/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A step at work on the value of a name: who holds, who waits, who sleeps, and how an attempt goes from one to the
 * other.  apply.c decides what a step does; here it is done, and what others must be told is noted.
 *
 * The entries are in one array: holders, then the queue, then sleepers.  An entry that has left stays there, marked as
 * gone, until dm_work_remove_gone(), so indices hold until then, unless an entry is inserted or woken before them.
 */
#ifndef DM_REGISTERS_WORK_H
#define DM_REGISTERS_WORK_H

#include "registers/apply.h"
#include "store/store.h"

/* Flags of entries during a step. */
enum {
    DM_WORK_IS_MOVED = 64, /* came from a condition to the queue in this step */
    DM_WORK_IS_GONE = 128  /* to be removed */
};

struct dm_work {
    struct dm_reg_name_value *value;
    const struct dm_reg_step *step;
    struct dm_reg_result *ret;
    bool is_in_doubt;          /* D1: nothing is granted */
    uint64_t taken;            /* of the capacity, by all holds */
    struct dm_reg_notice lost; /* for which there is no room */
};

static inline int dm_work_count(const struct dm_reg_name_value *value)
{
    return value->hold_count + value->queue_count + value->sleeper_count;
}

static inline int dm_work_queue_end(const struct dm_reg_name_value *value)
{
    return value->hold_count + value->queue_count;
}

static inline const struct dm_reg_session_id *dm_work_session(const struct dm_reg_name_value *value, int index)
{
    return &value->sessions[value->entries[index].session].id;
}

/* A holder of the whole excludes everybody, so its death may leave data half written. */
static inline bool dm_work_is_whole(const struct dm_reg_name_value *value, const struct dm_reg_entry *entry)
{
    return entry->weight == value->capacity;
}

static inline bool dm_work_has_tokens(const struct dm_reg_name_value *value)
{
    return value->token + 1 < DM_TOKEN_LIMIT;
}

/* D5: an attempt is the same one only in the same session. */
bool dm_work_is_same(const struct dm_reg_name_value *value, int index, const struct dm_reg_ref *ref);

/* Counts what the holders have taken of the capacity. */
void dm_work_count_taken(struct dm_work *work);

/* True if a hold of this weight can be granted now. */
bool dm_work_fits(const struct dm_work *work, uint32_t weight);

/* Makes room at `index`; the caller fills it, and counts the new entry. */
struct dm_reg_entry *dm_work_insert(struct dm_work *work, int index);
void dm_work_remove_gone(struct dm_work *work);

/* The attempt of the step, without a place yet; its session is in the table. */
struct dm_reg_entry dm_work_my_entry(struct dm_work *work);
uint64_t dm_work_next_arrival(struct dm_reg_name_value *value);

/* ---- ends -------------------------------------------------------------------------------- */

/* An attempt leaves.  A signal that it carries is owed to the next sleeper. */
void dm_work_leave(struct dm_work *work, int index);

/* A hold ends as a death. */
void dm_work_die(struct dm_work *work, int index, unsigned how);

/* The session of an attempt is no more.  A hold ends as a death, unless perhaps nobody was inside. */
void dm_work_orphan(struct dm_work *work, int index);
void dm_work_end_hold(struct dm_work *work, int index, enum dm_end end);

/* Ends an attempt wherever it is.  False: it is nowhere. */
bool dm_work_end_attempt(struct dm_work *work, const struct dm_reg_ref *ref, enum dm_end end);

/* ---- the queue --------------------------------------------------------------------------- */

/* The attempt of the step joins the queue. */
void dm_work_enqueue(struct dm_work *work);

/* A sleeper becomes the last of the queue. */
void dm_work_wake(struct dm_work *work, int index, bool is_signalled);

/* Wakes up to `most` sleepers of a condition that are not newer than `upto`.  Returns the arrival of the last one. */
uint64_t dm_work_wake_some(struct dm_work *work, int condition, int most, uint64_t upto);

/* Removes what is gone, passes signals on, and grants.  Returns how many held before the grants. */
int dm_work_normalize(struct dm_work *work);

/* ---- notices ----------------------------------------------------------------------------- */

/* To the attempt of an entry, unless it is the caller, whom the answer tells.  The result may be filled. */
struct dm_reg_notice *dm_work_tell(struct dm_work *work, int index, enum dm_reg_news news);

/* To the first `hold_count` holders that asked to be told that somebody waits. */
void dm_work_tell_holders(struct dm_work *work, int hold_count);

/* SIGNALLED to those that came from a condition and have not got the lock. */
void dm_work_tell_moved(struct dm_work *work);

#endif
