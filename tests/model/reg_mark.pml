/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The mark of registers (libdmutex/registers/mark.h, rules D1 and D2), when a store loses all its data and says that
 * they are the same: the identity does not change, so only what is absent tells.
 *
 * A holder is certain of one name for SURE ticks after its last beat, which comes before the loss.  Two others want the
 * name.  They have known the mark for long, and it says that the data have been quiet for a lease.  A settled name that
 * somebody else holds is none of their business; one that is absent, or that was made anew and is in doubt, they may
 * settle.  Swaps expect the version that was read.  A tick may come between any two steps.
 */
#ifndef LEASE
#define LEASE 3
#endif
#ifndef SURE
#define SURE 2
#endif
#define ABSENT 0

/* With REACH SPIN is to find a trace to the place of this number. */
#ifdef REACH
#define reached(n) assert(REACH != (n))
#else
#define reached(n) skip
#endif

mtype = { NOTHING, DOUBT, SETTLED };

/* ---- the store ---- */
byte serial = 1;                       /* of versions, which never repeat */
byte mark_version = 1, quiet = LEASE;  /* the mark */
byte name_version = 1;                 /* the name */
mtype name = SETTLED;
bool is_lost;                          /* the data */

/* ---- the holder ---- */
byte sure = SURE;

/* ---- the two others ---- */
byte known[2], known_quiet[2];         /* the version of the mark as last read, and what it said */
byte since[2];                         /* ticks since the first read that showed this version */
byte name_read[2];                     /* the version of the name as last read */
mtype what[2];                         /* and what it was */
bool is_fresh[2];                      /* the mark was read after that */
bool is_inside[2];

#ifdef ONLY_FOR_THE_ABSENT /* control: a name in doubt is settled by the mark as it was known */
#define has_read_mark(p) (is_fresh[p] || what[p] == DOUBT)
#else
#define has_read_mark(p) is_fresh[p]
#endif
#ifdef READS_NO_MARK /* control: nor is the mark read for an absent name */
#define may_settle(p) (known[p] != ABSENT && known_quiet[p] >= LEASE)
#else
#define may_settle(p) (has_read_mark(p) && known[p] != ABSENT && known_quiet[p] >= LEASE)
#endif

inline read_mark()
{
#ifdef COUNTS_ON /* control: the time counts from the first read of any mark of this identity */
    if :: mark_version == ABSENT || known[p] == ABSENT -> since[p] = 0 :: else fi;
#else
    if :: known[p] != mark_version -> since[p] = 0 :: else fi;
#endif
    known[p] = mark_version; known_quiet[p] = quiet; is_fresh[p] = true
}

inline write_mark(for_so_long)
{
    serial++; mark_version = serial; quiet = for_so_long;
    known[p] = mark_version; known_quiet[p] = for_so_long
}

inline write_name(to)
{
    serial++; name_version = serial; name = to;
    name_read[p] = name_version; what[p] = to; is_fresh[p] = false
}

proctype process(byte p)
{
end:
    do
    :: atomic { !is_inside[p] && name_read[p] != name_version ->
        name_read[p] = name_version; what[p] = name; is_fresh[p] = false }
    :: atomic { !is_fresh[p] || (what[p] == DOUBT && known_quiet[p] < LEASE && known[p] != mark_version) -> read_mark() }
    /* the mark is absent: it begins anew */
    :: atomic { known[p] == ABSENT ->
        if
        :: mark_version == ABSENT -> write_mark(0); since[p] = 0; reached(1)
        :: else -> read_mark()
        fi }
    /* this process has seen it for a lease */
    :: atomic { known[p] != ABSENT && known_quiet[p] < LEASE && since[p] >= LEASE ->
        if
        :: mark_version == known[p] -> write_mark(LEASE); reached(2)
        :: else -> read_mark()
        fi }
    /* joins the queue of a name that may not be settled yet */
    :: atomic { what[p] == NOTHING && !may_settle(p) ->
        if
        :: name_version == name_read[p] -> write_name(DOUBT)
        :: else -> name_read[p] = name_version; what[p] = name; is_fresh[p] = false
        fi }
    /* settles it, and holds */
    :: atomic { what[p] != SETTLED && may_settle(p) && !is_inside[p] ->
        if
        :: name_version == name_read[p] ->
            write_name(SETTLED); is_inside[p] = true; reached(3);
            assert(sure == 0); assert(!is_inside[1 - p])
        :: else -> name_read[p] = name_version; what[p] = name; is_fresh[p] = false
        fi }
    od
}

proctype world()
{
    byte p;
end:
    do
    :: atomic { !is_lost -> sure = SURE } /* a beat */
    :: atomic { !is_lost -> is_lost = true;
        mark_version = ABSENT; quiet = 0; name_version = ABSENT; name = NOTHING }
    :: atomic { sure > 0 || since[0] < LEASE || since[1] < LEASE -> /* a tick */
        if :: sure > 0 -> sure-- :: else fi;
        for (p : 0 .. 1) {
            if :: since[p] < LEASE -> since[p]++ :: else fi
        };
        p = 0 }
    od
}

init
{
    atomic {
        known[0] = 1; known[1] = 1; known_quiet[0] = LEASE; known_quiet[1] = LEASE;
        since[0] = LEASE; since[1] = LEASE;
        name_read[0] = 1; name_read[1] = 1; what[0] = SETTLED; what[1] = SETTLED;
        run process(0); run process(1); run world()
    }
}
