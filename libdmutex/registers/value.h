/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The values that a register store keeps, as bytes and as plain structs: of a name, of a session, of the mark, and of a
 * condition's binding.
 *
 * Each begins with its version; the next byte is a letter for its kind and form.  A decoder takes only bytes that the
 * encoder would write, so decoding and encoding again gives the same bytes.  A value that is not ours is refused, never
 * repaired: EBADMSG.  doc/design/registers.md has the layout.
 */
#ifndef DM_REGISTERS_VALUE_H
#define DM_REGISTERS_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ident.h"
#include "registers/driver.h"
#include "registers/version.h"

#define DM_REG_QUEUE_MAX 10000   /* waiters of a name, and its sleepers; those who wake up may come on top */
#define DM_REG_HOLDS_MAX 10000   /* entries that hold at once */
#define DM_REG_CONDITIONS_MAX 64 /* conditions that a name has sleepers or carriers of */
#define DM_REG_CONDITION_ROOM (DM_REG_KEY_MAX + 1)
#define DM_REG_NUMBER_LIMIT (UINT64_C(1) << 62) /* arrival numbers, threads and times are below */

/* ---- a name ------------------------------------------------------------------------------ */

enum dm_reg_kind { DM_REG_MUTEX, DM_REG_RWLOCK, DM_REG_SEMAPHORE, DM_REG_KIND_COUNT };

#define DM_REG_RWLOCK_CAPACITY (1u << 20) /* of which a reader takes 1, and a writer all */
#define DM_REG_CAPACITY_MAX INT32_MAX

/*
 * Which session: of one process, one lease and one identity of the data.  The serial rises within the process; a lost
 * session is never used again.
 */
struct dm_reg_session_id {
    uint8_t uuid[DM_UUID_LENGTH / 2];
    uint32_t serial; /* 1, 2, 3 ...; 0: none */
    uint32_t lease_ms;
    uint64_t identity;
};

/* What is known of an entry, and of a hold. */
enum {
    DM_REG_ROBUST = 1,
    DM_REG_TELLS = 2,   /* the holder is told of the first waiter */
    DM_REG_KEPT = 4,    /* of a hold: perhaps no thread is inside, so its end with the session is no death */
    DM_REG_CARRIES = 8, /* came by a signal of its condition, and has it until it unlocks (C2) */
    DM_REG_FLAGS = 15
};

/* One attempt in the value: it holds, waits in the queue, or sleeps on a condition; never two of these. */
struct dm_reg_entry {
    uint64_t attempt;
    uint64_t thread;
    uint64_t token;     /* of a hold; else 0 */
    uint64_t arrival;   /* in the queue, and of a sleeper: its place; else 0 */
    uint64_t since_ms;  /* since 2020, by the clock of the writer: since when it holds, waits or sleeps; 0: not known */
    uint32_t weight;    /* how much of the capacity it takes */
    uint16_t session;   /* which of the table */
    uint16_t condition; /* which of the table: of a sleeper, and with DM_REG_CARRIES; else 0 */
    uint8_t flags;
};

struct dm_reg_table_session {
    struct dm_reg_session_id id;
    uint32_t mark; /* for passes over the table; no part of the value */
};

struct dm_reg_table_condition {
    char name[DM_REG_CONDITION_ROOM]; /* the key of its binding */
    uint32_t mark;                    /* as above */
};

enum dm_reg_health {
    DM_REG_CLEAN,
    DM_REG_OWNER_DIED,     /* a holder of the whole capacity died, and nobody has mended the data since */
    DM_REG_NOT_RECOVERABLE /* nobody holds, waits or sleeps */
};

/* The last hold of a free lock, for people. */
struct dm_reg_last {
    bool is_known;
    unsigned how; /* an enum dm_end, or DM_END_BROKEN */
    uint64_t thread;
    uint64_t since_ms; /* as of an entry */
    uint64_t held_ms;
    char label[DM_LABEL_ROOM]; /* of its session; "?": not known */
};

/*
 * The value of a name.  `entries` has the holds, then the queue, then the sleepers.  So the head of the queue comes to
 * hold by a shift of the border, and all three grow in one array.  Queue and sleepers are in the order of arrival.
 */
struct dm_reg_name_value {
    struct dm_reg_version version; /* absent: nothing is stored yet; the rest is as dm_reg_name_init() left it */
    uint64_t identity;             /* in which the value was settled (D1); 0: in none yet */
    enum dm_reg_kind kind;
    uint32_t capacity;
    uint64_t token;   /* the last one given */
    uint64_t arrival; /* the last number given */
    enum dm_reg_health health;
    struct dm_reg_last last; /* only while nobody holds */

    struct dm_reg_table_session *sessions;
    int session_count;
    struct dm_reg_table_condition *conditions;
    int condition_count;
    struct dm_reg_entry *entries;
    int hold_count, queue_count, sleeper_count;

    /* Memory, in bytes; dm_reg_name_reserve() makes it. */
    size_t sessions_room, conditions_room, entries_room;
};

/* An absent name, without memory. */
void dm_reg_name_init(struct dm_reg_name_value *value);

/* Gives the memory back, and leaves an absent name. */
void dm_reg_name_free(struct dm_reg_name_value *value);

/* Makes room for so many more of each.  0 or ENOMEM, which leaves the value as it is. */
int dm_reg_name_reserve(struct dm_reg_name_value *value, int sessions, int conditions, int entries);

/*
 * 0; EBADMSG, with a sentence for people in *ret_reason: not ours; ENOMEM.  `value` is empty before, as
 * dm_reg_name_init() and dm_reg_name_free() leave it, and still is after a failure.  Size 0 is an absent name.
 */
int dm_reg_name_decode(struct dm_reg_name_value *value, const void *bytes, size_t size, const char **ret_reason);

/* Returns the size.  If that is above `room`, the bytes in `to` mean nothing, and `to` may be NULL with room 0. */
size_t dm_reg_name_encode(const struct dm_reg_name_value *value, void *to, size_t room);

/*
 * Removes sessions and conditions that no entry names from the tables, and the last hold if somebody holds now.  A
 * value is tidy before it is encoded.
 */
void dm_reg_name_tidy(struct dm_reg_name_value *value);

bool dm_reg_session_id_equals(const struct dm_reg_session_id *one, const struct dm_reg_session_id *other);

/* True if the key of a condition can stand in a value: 1 to DM_REG_KEY_MAX bytes of a key. */
bool dm_reg_is_condition(const char *key);

/* ---- a session --------------------------------------------------------------------------- */

/* Attempts of holds that were broken by force: the owner learns of it at its next beat. */
#define DM_REG_NOTES_MAX 100

struct dm_reg_session_value {
    struct dm_reg_version version;
    bool is_dead;
    char label[DM_LABEL_ROOM]; /* for people: "<pid> <host> <program>"; dead: "?" if not known */
    int64_t dead_us; /* dead: when somebody wrote so, by the wall clock, since 1970; nothing below is set then */
    uint64_t beat;
    uint32_t lease_ms;
    uint64_t broken[DM_REG_NOTES_MAX];
    int broken_count;
};

/* The most bytes of the three values below. */
#define DM_REG_SMALL_MAX 1200

/* 0, or EBADMSG with a reason; *ret_value is untouched then.  Size 0 is EBADMSG: the caller knows what absent means. */
int dm_reg_session_decode(const void *bytes, size_t size, struct dm_reg_session_value *ret_value,
                          const char **ret_reason);
size_t dm_reg_session_encode(const struct dm_reg_session_value *value, uint8_t to[DM_REG_SMALL_MAX]);

/* ---- the mark ---------------------------------------------------------------------------- */

/* How long the store has been seen with this identity: grants of the former one are certain no longer (D2). */
struct dm_reg_mark_value {
    struct dm_reg_version version;
    char identity[DM_REG_IDENTITY_ROOM];
    uint64_t quiet_ms;
};

int dm_reg_mark_decode(const void *bytes, size_t size, struct dm_reg_mark_value *ret_value, const char **ret_reason);
size_t dm_reg_mark_encode(const struct dm_reg_mark_value *value, uint8_t to[DM_REG_SMALL_MAX]);

/* ---- a binding --------------------------------------------------------------------------- */

/* Which mutex the waiters of a condition use.  C5: a waiter compares the version at each poll. */
struct dm_reg_binding_value {
    struct dm_reg_version version;
    char mutex[DM_REG_KEY_MAX + 1]; /* any text but "" */
};

int dm_reg_binding_decode(const void *bytes, size_t size, struct dm_reg_binding_value *ret_value,
                          const char **ret_reason);
size_t dm_reg_binding_encode(const struct dm_reg_binding_value *value, uint8_t to[DM_REG_SMALL_MAX]);

#endif
