/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One session on registers (libdmutex/registers/session.c and watch.c, rules S1 to S10): its owner, and WATCHERS
 * others that may declare it dead.  The owner of a session that somebody has swapped to dead is not certain, and never
 * will be again.  The models of names build on this: reg_name.pml, reg_share.pml, reg_grace.pml.
 *
 * Time is ticks, which may come between any two steps, so every delay and every stopped process is there.  The owner's
 * clock may miss one tick of PERIOD.  A beat without an answer has been executed, never is, or is executed at any later
 * moment, if its version is the present one then.  There is no bound on beats, kills, notes and collections.
 *
 * A watcher's kill may be executed at any moment after its lease of watching, so a kill that is late is here, too.  A
 * read takes no time here: a later return would only shorten what it proves.
 */
#ifndef LEASE
#define LEASE 5
#endif
#ifndef SURE
#define SURE 4 /* of the lease, for the owner */
#endif
#ifndef PERIOD
#define PERIOD 5 /* the clocks' rates are 5 : 4 at most */
#endif
#ifndef WATCHERS
#define WATCHERS 1
#endif
#ifndef FLIGHTS
#define FLIGHTS 1 /* beats without an answer that can still be executed, or are in the value */
#endif
#ifndef TAKES_ANY_BEAT
#define TAKES_ANY_BEAT 0
#endif
#define REQUEST (FLIGHTS + 1)

/* With REACH SPIN is to find a trace to the place of this number. */
#ifdef REACH
#define reached(n) assert(REACH != (n))
#else
#define reached(n) skip
#endif

/* clang-format off */
mtype = { ABSENT, ALIVE, DEAD };
mtype = { UNMADE, LIVE, ENDING, OVER };
mtype = { NONE, SENT, DONE, CONFLICT };
mtype = { NOTHING, LATE, EXECUTED };
mtype = { IDLE, READS, SEES_VALUE, SEES_ABSENT, KILLS };
mtype = { NOWHERE, IN_QUEUE, INSIDE };
/* clang-format on */

/* ---- the session's value ------------------------------------------------------------------- */

mtype value = ABSENT;
byte there;     /* whose beat it has: 0 the newest that is proved, 1 ... FLIGHTS a flight's, REQUEST the request's */
bool has_note;  /* force: a hold is broken */
#ifdef AGES
byte age;       /* by the store's clock */
#endif
bool is_killed; /* it has been dead, whatever the value is now */
bool has_lost_data;

/* ---- the owner ----------------------------------------------------------------------------- */

mtype phase = UNMADE;
byte sure;     /* ticks for which it is certain */
bool fits;     /* the version that it knows is the present one */
bool is_first; /* ... and is that of the creation */
bool must_read, is_told, may_delete, is_known;

mtype request = NONE; /* a creation or a beat */
byte request_old;     /* ticks since its sending */
bool made_fits;       /* the version that it made is the present one */

typedef Flight {
    mtype state; /* NOTHING also if it can prove nothing any more */
    byte old;
    bool is_creation, is_last; /* the last one of them */
    bool is_newer;             /* than the newest beat that is proved */
};
Flight f[FLIGHTS];

mtype refers = NOWHERE; /* the process, in some name */
bool was_slow;          /* certainty has ended since the reference was sent */
byte missed;            /* ticks since the owner's clock missed one */

/* ---- the others ---------------------------------------------------------------------------- */

mtype watcher[WATCHERS] = IDLE;
byte watched[WATCHERS];

hidden byte i;

#define is_certain (phase == LIVE && sure > 0)
#define check() assert(!(is_killed && is_certain)); /* DEAD_ARE_NOT_CERTAIN */
#define is_late(j) (f[j].state == LATE)
#define is_fit (phase == UNMADE -> value == ABSENT : fits)

/* ---- writes -------------------------------------------------------------------------------- */

inline forget_flight(j)
{
    f[j].state = NOTHING; f[j].old = 0; f[j].is_creation = false; f[j].is_last = false; f[j].is_newer = false
}

/* Another version: nothing that expects the one before can be executed, and its watchers begin anew. */
inline write(what, whose)
{
    fits = false; made_fits = false;
    value = what;
    i = 0;
    do
    :: i < FLIGHTS ->
       if
       :: is_late(i) && !f[i].is_creation -> forget_flight(i)
       :: f[i].state == EXECUTED && whose != i + 1 -> forget_flight(i)
       :: else
       fi;
       i++
    :: else -> break
    od;
    there = whose;
    i = 0;
    do
    :: i < WATCHERS ->
       watched[i] = (watcher[i] == SEES_ABSENT || watcher[i] == READS -> watched[i] : 0);
       watcher[i] = (watcher[i] == SEES_VALUE -> IDLE : watcher[i]);
       i++
    :: else -> break
    od;
    i = 0
#ifdef AGES
    ; age = 0
#endif
}

inline kill()
{
    write(DEAD, 0);
    is_killed = true; has_note = false; is_told = false;
    assert(!(refers != NOWHERE && !was_slow && phase == LIVE)); /* ONLY_THE_SLOW_DIE */
    check()
}

/* Force notes are in the value that a beat replaces, so the owner has read them. */
inline write_beat(whose)
{
    write(ALIVE, whose);
    assert(!has_note || is_told); /* TOLD_OF_FORCE */
    has_note = false; is_told = false
}

/* ---- the owner ----------------------------------------------------------------------------- */

/* S1. */
inline prove(ticks)
{
    if
    :: ticks < SURE && SURE - ticks > sure -> sure = SURE - ticks
    :: else
    fi;
    phase = (phase == UNMADE -> LIVE : phase);
    is_known = true;
    check()
}

#ifdef SURE_FROM_THE_ANSWER
#define age_of(ticks) 0
#else
#define age_of(ticks) ticks
#endif

inline take_done()
{
    is_first = (phase == UNMADE);
    fits = made_fits; made_fits = false;
    there = (there == REQUEST -> 0 : there);
    i = 0;
    do
    :: i < FLIGHTS -> f[i].is_newer = false; i++
    :: else -> break
    od;
    i = 0;
    request = NONE;
    prove(age_of(request_old));
    request_old = 0
}

#define is_free(j) (f[j].state == NOTHING)
#if FLIGHTS > 1
#define free_flight (is_free(0) -> 0 : 1)
#define has_free_flight (is_free(0) || is_free(1))
#else
#define free_flight 0
#define has_free_flight is_free(0)
#endif

inline lose_answer()
{
    i = 0;
    do
    :: i < FLIGHTS -> f[i].is_last = false; i++
    :: else -> break
    od;
    i = free_flight;
    if
    :: request == SENT && is_fit ->
       f[i].state = LATE; f[i].old = request_old; f[i].is_newer = true;
       f[i].is_creation = (phase == UNMADE); f[i].is_last = (phase == UNMADE)
    :: request == DONE && there == REQUEST ->
       f[i].state = EXECUTED; f[i].old = request_old; f[i].is_newer = true; there = i + 1
    :: else
    fi;
    i = 0;
#ifdef TAKES_UNKNOWN_FOR_DONE
    prove(request_old);
#endif
    request = NONE; request_old = 0; made_fits = false; must_read = true
}

/* S6, D7: a session that is lost while it is certain proves that the store has lost data. */
inline lose()
{
    if
    :: is_certain -> assert(has_lost_data); reached(7) /* NO_PROOF_WITHOUT_LOSS */
    :: else
    fi;
    phase = OVER; must_read = false; sure = 0; refers = NOWHERE; was_slow = false
}

inline read_own()
{
    must_read = false;
    if
#ifdef CREATES_AGAIN
    :: value == ABSENT && phase == UNMADE
#endif
    :: value == DEAD ||
#ifdef CREATES_AGAIN
       (value == ABSENT && phase != UNMADE) ||
#else
       value == ABSENT ||
#endif
       (value == ALIVE && there > 0 && there != REQUEST && !f[there - 1].is_newer && !TAKES_ANY_BEAT) ->
       lose()
    :: else ->
       is_told = is_told || has_note;
       fits = true; is_first = (phase == UNMADE);
       if
       :: there > 0 ->
          i = there - 1;
          if
          :: f[i].is_newer -> prove(f[i].old)
          :: else
          fi;
          forget_flight(i);
          there = 0;
          i = 0;
          do
          :: i < FLIGHTS -> f[i].is_newer = f[i].is_newer && f[i].is_last; i++
          :: else -> break
          od;
          i = 0
       :: else -> phase = (phase == UNMADE -> LIVE : phase)
       fi
    fi
}

#ifdef REFERS_UNSURE
#define may_refer (phase == LIVE)
#else
#define may_refer is_certain
#endif

#define owner \
    :: d_step { request == NONE && !must_read && (phase == UNMADE || phase == LIVE) -> request = SENT } \
    :: d_step { request == DONE -> take_done() } \
    :: d_step { request == CONFLICT -> \
        request = NONE; request_old = 0; \
        if \
        :: phase == UNMADE -> lose() \
        :: else -> must_read = true; reached(1) \
        fi } \
    :: d_step { (request == SENT || request == DONE) && has_free_flight -> lose_answer() } \
    :: d_step { must_read && phase != OVER -> read_own() } \
    /* S8, S10 */ \
    :: d_step { refers == NOWHERE && may_refer -> refers = IN_QUEUE; was_slow = false } \
    :: d_step { refers == IN_QUEUE && is_certain -> refers = INSIDE } \
    :: d_step { refers != NOWHERE && is_certain -> refers = NOWHERE; was_slow = false } \
    /* S7 */ \
    :: d_step { refers == INSIDE && phase == LIVE && sure == 0 -> phase = ENDING; reached(3) } \
    /* S9: the process exits */ \
    :: d_step { refers == NOWHERE && phase == LIVE -> phase = ENDING; may_delete = true } \
    :: d_step { phase == ENDING && request == NONE && !must_read -> \
        sure = 0; \
        if \
        :: fits && may_delete -> write(ABSENT, 0); phase = OVER \
        :: fits && !may_delete -> kill(); phase = OVER \
        :: else -> must_read = true \
        fi }

#define flight(j) \
    :: d_step { is_late(j) && (f[j].is_creation -> value == ABSENT : true) -> \
        f[j].state = EXECUTED; write_beat(j + 1); reached(4) } \
    :: d_step { is_late(j) -> forget_flight(j) }

/* ---- the others ---------------------------------------------------------------------------- */

/* S2, S3: the lease is counted from the return of the first read that showed the version. */
#ifdef WATCHED_FROM_THE_SENDING
#define begin_to_watch(k) \
    :: d_step { watcher[k] == IDLE && is_known && value == ALIVE -> watcher[k] = READS; watched[k] = 0 } \
    :: d_step { watcher[k] == READS && value != ALIVE -> watcher[k] = IDLE; watched[k] = 0 } \
    :: d_step { watcher[k] == READS && value == ALIVE -> watcher[k] = SEES_VALUE }
#else
#define begin_to_watch(k) \
    :: d_step { watcher[k] == IDLE && is_known && value == ALIVE -> watcher[k] = SEES_VALUE; watched[k] = 0 }
#endif

#ifdef STALE
#define may_see_absent (value == ABSENT || value == ALIVE)
#else
#define may_see_absent (value == ABSENT)
#endif

#ifdef AGES
#define look_at_age(k) \
    :: d_step { watcher[k] == SEES_VALUE && age == LEASE && watched[k] < LEASE -> watched[k] = LEASE }
#else
#define look_at_age(k)
#endif

#ifdef PLAIN_WRITE
#define kill_it(k) \
    :: d_step { watcher[k] == SEES_VALUE && watched[k] == LEASE -> watcher[k] = KILLS } \
    :: d_step { watcher[k] == KILLS -> watcher[k] = IDLE; watched[k] = 0; kill(); reached(2) }
#else
#define kill_it(k) \
    :: d_step { watcher[k] == SEES_VALUE && watched[k] == LEASE -> kill(); reached(2) }
#endif

#ifdef ABSENT_IS_DEAD
#define kill_absent(k) \
    :: d_step { watcher[k] == SEES_ABSENT -> watcher[k] = IDLE; is_killed = true; check() }
#else
#define kill_absent(k) \
    :: d_step { watcher[k] == SEES_ABSENT && watched[k] == LEASE && value == ABSENT -> \
        watcher[k] = IDLE; kill(); restart_versions(); reached(5) } \
    :: d_step { watcher[k] == SEES_ABSENT && value != ABSENT -> watcher[k] = IDLE; watched[k] = 0 }
#endif

/* S5: a value that is made anew has the version that the creation had. */
#ifdef VERSIONS_RESTART
#define restart_versions() fits = (is_first && phase == LIVE)
#else
#define restart_versions() skip
#endif

#define others(k) \
    begin_to_watch(k) \
    :: d_step { watcher[k] == IDLE && is_known && may_see_absent -> watcher[k] = SEES_ABSENT; watched[k] = 0 } \
    look_at_age(k) \
    kill_it(k) \
    kill_absent(k)

#ifdef NOTE_KEEPS_THE_VERSION
#define write_note() has_note = true
#else
#define write_note() write(ALIVE, there); has_note = true
#endif

#if WATCHERS > 1
#define more_others others(1)
#else
#define more_others
#endif
#if FLIGHTS > 1
#define more_flights flight(1)
#else
#define more_flights
#endif

/* ---- time ---------------------------------------------------------------------------------- */

inline tick_others()
{
    i = 0;
    do
    :: i < WATCHERS ->
       watched[i] = (watcher[i] != IDLE && watcher[i] != KILLS && watched[i] < LEASE -> watched[i] + 1 : watched[i]);
       i++
    :: else -> break
    od;
    i = 0
#ifdef AGES
    ; age = (value != ABSENT && age < LEASE -> age + 1 : age)
#endif
}

inline tick_owner()
{
    sure = (sure > 0 -> sure - 1 : 0);
    was_slow = was_slow || (refers != NOWHERE && sure == 0);
    request_old = (request != NONE && request != CONFLICT && request_old < SURE -> request_old + 1 : request_old);
    i = 0;
    do
    :: i < FLIGHTS -> f[i].old = (f[i].state != NOTHING && f[i].old < SURE -> f[i].old + 1 : f[i].old); i++
    :: else -> break
    od;
    i = 0;
    missed = (missed < PERIOD - 1 -> missed + 1 : missed)
}

active proctype world()
{
    i = 0;
    do
    :: i < FLIGHTS -> f[i].state = NOTHING; i++
    :: else -> break
    od;
    i = 0;
end:
    do
    owner
    /* the store */
    :: d_step { request == SENT && is_fit -> request = DONE; write_beat(REQUEST); made_fits = true }
    :: d_step { request == SENT && !is_fit -> request = CONFLICT; request_old = 0 }
    flight(0)
    more_flights
    others(0)
    more_others
    :: d_step { value == DEAD -> write(ABSENT, 0) } /* S9: collected */
#ifdef NOTES
    :: d_step { value == ALIVE && !has_note -> is_told = false; write_note(); reached(6) }
#endif
#ifdef LOSES_DATA
    /* The store comes back empty under the same identity. */
    :: d_step { value != ABSENT && !has_lost_data ->
        has_lost_data = true; has_note = false; is_told = false; write(ABSENT, 0) }
#endif
#ifdef SWEEPS_UNSEEN
    :: d_step { value == ALIVE && is_known -> kill() }
#endif
    :: d_step { tick_others(); tick_owner() }
#ifndef ONE_CLOCK
    :: d_step { missed == PERIOD - 1 -> missed = 0; tick_others() }
#endif
    od
}
