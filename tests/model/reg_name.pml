/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One name on registers (libdmutex/registers/apply.c and errand.c, rules N1 to N12): holder, queue and health; swaps
 * without an answer; sessions that die; force; the order of arrival; tokens; the deletion of an idle key.
 *
 * Each process has one thread, and a session that may end: reg_session.pml shows that a session is killed only when its
 * owner is not certain, and never will be again.  So certainty is one bit here, which may lapse at any moment, and a
 * kill needs that it has.
 *
 * A swap that has an answer is one step: after a conflict nothing has changed, and it is made anew.  One without an
 * answer waits in a slot until it is executed, which needs that nobody has written since it was made, or never is.
 *
 * A reference is CURRENT: of the present attempt in the present session; OWED: the thread is through with it, and the
 * process still has to take it away; GONE: of a former session; OVER: of an attempt that is over, in a living session.
 * There must be none of these (N5).
 *
 * Time is events.  With SAFE they come at any moment; else only when nothing else can happen, so a state in which a
 * process waits for ever is found: REST.
 */
#ifndef PROCS
#define PROCS 2
#endif
#ifndef ROUNDS0
#define ROUNDS0 2
#endif
#ifndef ROUNDS1
#define ROUNDS1 1
#endif
#ifndef ROUNDS2
#define ROUNDS2 1
#endif
#ifndef UNKNOWNS
#define UNKNOWNS 0 /* swaps of process 0 without an answer */
#endif
#ifndef LAPSES
#define LAPSES 0 /* of the certainty of process 0 */
#endif
#ifndef CRASHES
#define CRASHES 0 /* of process 0 */
#endif
#ifndef TIMEOUTS
#define TIMEOUTS 0 /* of process 0 */
#endif
#ifndef LOSSES
#define LOSSES 0 /* of notices */
#endif
#ifndef FORCES
#define FORCES 0
#endif
#ifndef DELETES
#define DELETES 0
#endif
#ifndef RESTS
#define RESTS 4
#endif

/* With REACH SPIN is to find a trace to the place of this number. */
#ifdef REACH
#define reached(n) assert(REACH != (n))
#else
#define reached(n) skip
#endif

/* clang-format off */
mtype = { OUT, ASKS, WAITS, GRANTED, INSIDE, RELEASES, CANCELS, OWES, ENDED };
mtype = { ACQUIRE, RELEASE, DIE, MEND };
mtype = { EMPTY, OF_CURRENT, OF_ANOTHER };
/* clang-format on */

#define NOBODY 0
#define CURRENT 1
#define OWED 2
#define GONE 3
#define OVER 4
#define ref(p, kind) (4 * (p) + (kind))
#define process_of(r) (((r) - 1) / 4)
#define kind_of(r) (((r) - 1) % 4 + 1)
#define rounds_of(p) ((p) == 0 -> ROUNDS0 : ((p) == 1 -> ROUNDS1 : ROUNDS2))

/* ---- the name's value ---------------------------------------------------------------------- */

byte hold;
byte queue[5], queued;
bool has_died;   /* its health */
bool is_there;   /* the key */
#ifdef TOKENS
byte token, top; /* the last one given; the highest ever */
byte seen[3];
#endif
#ifdef ARRIVALS
byte arrival, number[5], first[3]; /* of the queue's entries; the process's number, once it knows */
#endif

/* ---- swaps of process 0 without an answer -------------------------------------------------- */

typedef Slot {
    bool is_used, fits, is_for_absent;
    mtype act;
    byte kind; /* of the reference */
};
Slot late[2];

/* ---- the processes ------------------------------------------------------------------------- */

mtype at[3] = OUT;
byte rounds[3];
bool sure[3] = true;
bool is_killed[3];  /* the present session */
bool gone_is_dead[3] = true; /* the former ones */
bool is_crashed[3], is_through[3];
bool owes[3], is_unsettled[3];
bool is_told[3];    /* of a death */
bool was_inside[3]; /* the thread, when its hold was lost */
bool is_lost_alone[3];
mtype box[3] = EMPTY; /* a notice of a grant */
bool box_died[3];
bool may_poll[3];
bool is_noted[3], is_broken[3]; /* by force: in the session; in the name */
bool is_forcing;
byte forced;

/* What the next holder must, and may be told. */
bool must_tell, may_tell;
byte unknowns = UNKNOWNS, lapses = LAPSES, crashes = CRASHES, timeouts = TIMEOUTS, losses = LOSSES, forces = FORCES,
     deletes = DELETES, rests;

hidden byte i, j, r, found, late_kind, late_act; /* inside a step */

#define is_dead(x) (kind_of(x) == GONE -> gone_is_dead[process_of(x)] : is_killed[process_of(x)])
#define is_queued(x) (queue[0] == (x) || queue[1] == (x) || queue[2] == (x) || queue[3] == (x))
#define is_there_for(x) (hold == (x) || is_queued(x))
#define is_running(p) (!is_crashed[p] && !is_through[p])
#define is_inside(p) ((at[p] == INSIDE) && sure[p] && !is_broken[p])

inline check()
{
    assert(!(is_inside(0) && is_inside(1))); /* EXCLUSION */
#if PROCS > 2
    assert(!(is_inside(0) && is_inside(2)));
    assert(!(is_inside(1) && is_inside(2)));
#endif
    /* NOTHING_STAYS: N5, N7 */
    assert(hold == NOBODY || kind_of(hold) != OVER);
    assert(queued == 0 || kind_of(queue[0]) != OVER);
    assert(queued < 2 || kind_of(queue[1]) != OVER);
#ifndef RELEASES_WITHOUT_GRANT
    assert(hold != NOBODY || queued == 0) /* NO_FREE_LOCK_WITH_WAITERS: N1 */
#endif
}

/* ---- steps on the value -------------------------------------------------------------------- */

inline remove_at(k)
{
    j = k;
    do
    :: j < 4 ->
       queue[j] = queue[j + 1];
#ifdef ARRIVALS
       number[j] = number[j + 1];
#endif
       j++
    :: else -> break
    od;
    queue[4] = NOBODY; queued--; j = 0
#ifdef ARRIVALS
    ; number[4] = 0
#endif
}

inline leave_queue(x)
{
    i = 0;
    do
    :: i < queued && queue[i] != x -> i++
    :: else -> break
    od;
    if
    :: i < queued -> remove_at(i)
    :: else
    fi;
    i = 0
}

inline note_death(x)
{
    if
    :: was_inside[process_of(x)] && kind_of(x) == GONE -> must_tell = true; was_inside[process_of(x)] = false
    :: else -> may_tell = true
    fi;
#ifndef DEATH_IS_NOT_NOTED
    has_died = true
#endif
}

/* N2: whoever knows of the death of a session's references takes them away. */
inline bury()
{
    if
    :: hold != NOBODY && is_dead(hold) -> note_death(hold); hold = NOBODY
    :: else
    fi;
    i = 0;
    do
    :: i < queued && is_dead(queue[i]) -> remove_at(i)
    :: i < queued && !is_dead(queue[i]) -> i++
    :: else -> break
    od;
    i = 0
}

/* N10 */
inline enqueue(p, x)
{
#ifdef ARRIVALS
#ifdef COMES_BACK_AS_THE_LAST
    arrival++; r = arrival;
#else
    if
    :: first[p] > 0 -> r = first[p]
    :: else -> arrival++; r = arrival
    fi;
#endif
    i = queued;
    do
    :: i > 0 && number[i - 1] > r -> queue[i] = queue[i - 1]; number[i] = number[i - 1]; i--
    :: else -> break
    od;
    queue[i] = x; number[i] = r; queued++; i = 0; r = 0
#else
    queue[queued] = x; queued++
#endif
}

/* A process learns its number from an answer. */
inline learn_number(p)
{
#ifdef ARRIVALS
    i = 0;
    do
    :: i < queued && queue[i] != ref(p, CURRENT) -> i++
    :: else -> break
    od;
    if
    :: i < queued && first[p] == 0 -> first[p] = number[i]
    :: else
    fi;
    i = 0
#else
    skip
#endif
}

/* Nobody who has waited longer, and has come back, is passed. */
inline check_order(x)
{
#ifdef ARRIVALS
    if
    :: kind_of(x) == CURRENT ->
       i = 0;
       do
       :: i < queued ->
          r = queue[i];
          assert(!(kind_of(r) == CURRENT && first[process_of(r)] > 0 && first[process_of(x)] > 0 &&
                   first[process_of(r)] < first[process_of(x)])); /* ORDER */
          i++
       :: else -> break
       od;
       i = 0; r = 0
    :: else
    fi
#else
    skip
#endif
}

/* A right clock is above all tokens; a wrong one is of no use, and then only a process that comes back is safe. */
#ifdef BAD_CLOCK
#define the_clock 0
#define TOLD_BEFORE seen[process_of(hold)]
#elif defined NO_CLOCK
#define the_clock 0
#define TOLD_BEFORE top
#else
#define the_clock top
#define TOLD_BEFORE top
#endif

inline next_token()
{
#ifdef TOKENS
    token++;
    assert(token > TOLD_BEFORE); /* TOKEN */
    top = (token > top -> token : top)
#else
    skip
#endif
}

#ifdef SEES_NO_TOKENS
#define seen_by(p) 0
#else
#define seen_by(p) seen[p]
#endif

/* N11: a key that is new. */
inline settle(p)
{
#ifdef TOKENS
    if
    :: !is_there ->
       token = (seen_by(p) > token -> seen_by(p) : token);
       token = (the_clock > token -> the_clock : token)
    :: else
    fi
#else
    skip
#endif
}

/* N1.  The new holder is told, unless it is the writer. */
inline serve(p)
{
    if
    :: hold == NOBODY && queued > 0 ->
       hold = queue[0]; remove_at(0);
       check_order(hold);
       next_token();
       found = process_of(hold);
       if
       :: found != p && !is_crashed[found] && kind_of(hold) != GONE ->
          box[found] = (kind_of(hold) == CURRENT -> OF_CURRENT : OF_ANOTHER); box_died[found] = has_died
       :: else
       fi;
       found = 0
    :: else
    fi
}

#ifdef RELEASES_WITHOUT_GRANT
#define serve_after_release(p) skip
#else
#define serve_after_release(p) serve(p)
#endif

/* Whatever expects the version before does not fit any more. */
inline wrote()
{
    late[0].fits = false; late[1].fits = false;
    is_there = true;
    check()
}

/* A step by process p, for its reference of this kind. */
inline apply(p, act, which)
{
    settle(p);
    if
    :: owes[p] && which != OWED ->
       leave_queue(ref(p, OWED));
       hold = (hold == ref(p, OWED) -> NOBODY : hold)
    :: else
    fi;
    bury();
    if
    :: act == ACQUIRE && !is_there_for(ref(p, which)) -> enqueue(p, ref(p, which)); serve(p)
    :: act == ACQUIRE && is_there_for(ref(p, which)) -> serve(p)
    :: (act == RELEASE || act == DIE) && hold == ref(p, which) ->
       hold = NOBODY;
       if
       :: act == DIE -> has_died = true; must_tell = true
       :: else
       fi;
       serve_after_release(p)
    :: (act == RELEASE || act == DIE) && hold != ref(p, which) -> leave_queue(ref(p, which)); serve_after_release(p)
    :: act == MEND ->
       if
       :: hold == ref(p, which) -> has_died = false; must_tell = false; may_tell = false
       :: else
       fi;
       serve(p)
    fi;
    wrote()
}

/* DONE.  N5: that settles whatever was unknown, and with it what is owed. */
inline swap(p, act, which)
{
    apply(p, act, which);
    is_unsettled[p] = false; owes[p] = false
}

/* ---- attempts and sessions ----------------------------------------------------------------- */

inline rename(before, after)
{
    hold = (hold == before -> after : hold);
    i = 0;
    do
    :: i < queued -> queue[i] = (queue[i] == before -> after : queue[i]); i++
    :: else -> break
    od;
    i = 0
}

inline rename_late(before, after)
{
    late[0].kind = (late[0].is_used && late[0].kind == before -> after : late[0].kind);
    late[1].kind = (late[1].is_used && late[1].kind == before -> after : late[1].kind)
}

/* The thread is through with the attempt. */
inline end_attempt(p, what)
{
    rename(ref(p, CURRENT), ref(p, what));
    if
    :: p == 0 -> rename_late(CURRENT, what)
    :: else
    fi;
    box[p] = (box[p] == OF_CURRENT -> OF_ANOTHER : box[p]);
    is_told[p] = false; is_lost_alone[p] = false; is_noted[p] = false; is_broken[p] = false;
    is_forcing = (forced == p -> false : is_forcing)
}

/* The process goes on with another session. */
inline leave_session(p)
{
    end_attempt(p, GONE);
    rename(ref(p, OWED), ref(p, GONE));
    if
    :: p == 0 -> rename_late(OWED, GONE)
    :: else
    fi;
    gone_is_dead[p] = is_killed[p]; is_killed[p] = false;
    owes[p] = false; sure[p] = true; box[p] = EMPTY; box_died[p] = false
}

inline next_round(p)
{
    rounds[p]++; at[p] = OUT;
#ifdef ARRIVALS
    first[p] = 0;
#endif
    check()
}

/* Who knows that it holds is told of a death, and of its token. */
inline be_granted(p, died)
{
    at[p] = GRANTED; is_told[p] = died
#ifdef TOKENS
    ; seen[p] = (token > seen[p] -> token : seen[p])
#endif
}

/* An attempt that does not know yet that it holds is broken, too: a notice of the grant may still be on its way. */
#ifdef WAITERS_IGNORE_NOTES
#define hears_note(p) (at[p] == GRANTED)
#else
#define hears_note(p) (at[p] == GRANTED || at[p] == ASKS || at[p] == WAITS || at[p] == CANCELS)
#endif

/* A beat brings certainty back, or the word that the session is dead, and tells of force. */
inline beat(p)
{
    if
    :: is_killed[p] -> leave_session(p); at[p] = OUT
    :: else ->
       assert(!(at[p] == INSIDE && is_broken[p]) || is_noted[p]); /* BROKEN_HEARS */
       sure[p] = true;
       if
       :: is_noted[p] && at[p] == INSIDE -> at[p] = RELEASES; is_lost_alone[p] = true; reached(5)
       :: is_noted[p] && hears_note(p) -> at[p] = RELEASES
       :: else
       fi;
       is_noted[p] = false; is_broken[p] = false
    fi
}

#ifdef SAFE
#define does_poll(p) true
#else
#define does_poll(p) may_poll[p]
#endif
#ifdef NO_POLLS
#define polls(p)
#else
#define polls(p) \
    :: d_step { is_running(p) && at[p] == WAITS && does_poll(p) -> \
        may_poll[p] = false; \
        if \
        :: (hold == NOBODY && queued > 0) || (hold != NOBODY && is_dead(hold)) || (queued > 0 && is_dead(queue[0])) -> \
           swap(p, ACQUIRE, CURRENT) \
        :: else \
        fi; \
        learn_number(p); \
        if \
        :: hold == ref(p, CURRENT) -> be_granted(p, has_died) \
        :: !is_there_for(ref(p, CURRENT)) && !is_killed[p] -> at[p] = ASKS \
        :: else \
        fi }
#endif

#ifdef BELIEVES_ANY_NOTICE
#define is_believed(p) true
#else
#define is_believed(p) (box[p] == OF_CURRENT)
#endif

/* N3: the clock comes last. */
#ifdef ENTERS_UNSURE
#define may_enter(p) true
#define believe(p) sure[p] = true
#else
#define may_enter(p) sure[p]
#define believe(p) skip
#endif

/* N5: an end without a write is true only if nothing of ours can come late. */
#ifdef CANCELS_BY_LOOKING
#define must_write(p, which) is_there_for(ref(p, which))
#else
#define must_write(p, which) (is_there_for(ref(p, which)) || is_unsettled[p])
#endif

#define process(p) \
    :: d_step { is_running(p) && at[p] == OUT && rounds[p] == rounds_of(p) && !owes[p] -> is_through[p] = true; at[p] = ENDED } \
    :: d_step { is_running(p) && at[p] == OUT && rounds[p] < rounds_of(p) && sure[p] -> at[p] = ASKS } \
    /* lock */ \
    :: d_step { is_running(p) && at[p] == ASKS && sure[p] && !is_there_for(ref(p, CURRENT)) -> \
        swap(p, ACQUIRE, CURRENT); learn_number(p); \
        /* the notice of the broken grant may still come, until the note is heard */ \
        is_broken[p] = is_broken[p] && box[p] == OF_CURRENT; \
        if \
        :: hold == ref(p, CURRENT) -> be_granted(p, has_died) \
        :: else -> at[p] = WAITS \
        fi } \
    :: d_step { is_running(p) && at[p] == ASKS && is_there_for(ref(p, CURRENT)) -> \
        learn_number(p); \
        if \
        :: hold == ref(p, CURRENT) -> be_granted(p, has_died) \
        :: else -> at[p] = WAITS \
        fi } \
    /* N4 */ \
    :: d_step { is_running(p) && at[p] == WAITS && sure[p] && box[p] != EMPTY && is_believed(p) -> \
        be_granted(p, box_died[p]); box[p] = EMPTY; box_died[p] = false } \
    :: d_step { is_running(p) && box[p] != EMPTY && !(at[p] == WAITS && is_believed(p)) && \
        !(at[p] == ASKS && box[p] == OF_CURRENT) -> box[p] = EMPTY; box_died[p] = false } \
    polls(p) \
    :: d_step { is_running(p) && at[p] == GRANTED && may_enter(p) -> \
        at[p] = INSIDE; rests = 0; believe(p); check(); \
        if \
        :: !is_broken[p] -> \
           assert(!must_tell || is_told[p]); /* DEATH_TOLD */ \
           assert(!is_told[p] || must_tell || may_tell) /* DEATH_TRUE */ \
        :: else \
        fi } \
    :: d_step { is_running(p) && at[p] != INSIDE && !sure[p] -> beat(p) } \
    :: d_step { is_running(p) && sure[p] && (is_noted[p] || (is_broken[p] && at[p] == INSIDE)) -> beat(p) } \
    /* N12 */ \
    :: d_step { is_running(p) && at[p] == INSIDE && sure[p] && is_told[p] -> swap(p, MEND, CURRENT); is_told[p] = false } \
    /* S7 */ \
    :: d_step { is_running(p) && at[p] == INSIDE && !sure[p] -> lose(p); next_round(p) } \
    /* unlock */ \
    :: d_step { is_running(p) && at[p] == INSIDE && sure[p] && !is_told[p] -> at[p] = RELEASES } \
    :: d_step { is_running(p) && at[p] == RELEASES && must_write(p, CURRENT) -> \
        swap(p, (is_lost_alone[p] -> DIE : RELEASE), CURRENT); end_attempt(p, OVER); next_round(p) } \
    :: d_step { is_running(p) && at[p] == RELEASES && !must_write(p, CURRENT) -> end_attempt(p, OVER); next_round(p) } \
    old_read(p) \
    /* the deadline of a lock, or a thread that ends */ \
    :: d_step { is_running(p) && at[p] == CANCELS && hold == ref(p, CURRENT) -> be_granted(p, has_died) } \
    :: d_step { is_running(p) && at[p] == CANCELS && hold != ref(p, CURRENT) && must_write(p, CURRENT) -> \
        swap(p, RELEASE, CURRENT); end_attempt(p, OVER); next_round(p); reached(2) } \
    :: d_step { is_running(p) && at[p] == CANCELS && !must_write(p, CURRENT) -> end_attempt(p, OVER); next_round(p) } \
    :: d_step { is_running(p) && at[p] == OWES && !owes[p] -> end_attempt(p, OWED); owes[p] = true; next_round(p) } \
    /* what is owed, by the loop's thread */ \
    :: d_step { is_running(p) && owes[p] && must_write(p, OWED) -> swap(p, RELEASE, OWED) } \
    :: d_step { is_running(p) && owes[p] && !must_write(p, OWED) -> \
        owes[p] = false; \
        if \
        :: p == 0 -> rename_late(OWED, OVER) \
        :: else \
        fi } \
    end_gone(p)

/* The ended session is swapped to dead: by the process itself, or by others. */
#define end_gone(p) \
    :: d_step { !gone_is_dead[p] -> gone_is_dead[p] = true }

#ifdef OLD_READS
#define old_read(p) \
    :: d_step { is_running(p) && at[p] == RELEASES -> end_attempt(p, OVER); next_round(p) }
#else
#define old_read(p)
#endif

#ifdef SESSION_GOES_ON
#define lose(p) \
    if \
    :: is_killed[p] -> leave_session(p) \
    :: else -> end_attempt(p, OVER); sure[p] = true \
    fi
#else
#define lose(p) was_inside[p] = (hold == ref(p, CURRENT)); leave_session(p); reached(3)
#endif

/* ---- faults -------------------------------------------------------------------------------- */

/* Process 0 sends a swap, and there is no answer. */
inline lose_answer(what, which)
{
    unknowns--; is_unsettled[0] = true;
    i = (late[0].is_used -> 1 : 0);
    late[i].is_used = true; late[i].fits = true; late[i].is_for_absent = !is_there;
    late[i].act = what; late[i].kind = which;
    i = 0
}

inline forget_late(k)
{
    late[k].is_used = false; late[k].fits = false; late[k].is_for_absent = false; late[k].act = 0; late[k].kind = 0
}

#define is_free_slot (!late[0].is_used || !late[1].is_used)
#define may_lose (unknowns > 0 && is_running(0) && is_free_slot)

#define slot(k) \
    :: d_step { late[k].is_used && late[k].fits -> \
        late_kind = late[k].kind; late_act = late[k].act; forget_late(k); late_apply(late_kind, late_act) } \
    :: d_step { late[k].is_used -> forget_late(k) }

/* The swap was made when the attempt lived; what it does to the value is the same. */
inline late_apply(which, what)
{
    settle(0);
    bury();
    if
    :: what == ACQUIRE && !is_there_for(ref(0, which)) -> enqueue(0, ref(0, which))
    :: (what == RELEASE || what == DIE) && hold == ref(0, which) ->
       hold = NOBODY;
       has_died = has_died || what == DIE; must_tell = must_tell || what == DIE
    :: (what == RELEASE || what == DIE) && hold != ref(0, which) -> leave_queue(ref(0, which))
    :: what == MEND && hold == ref(0, which) -> has_died = false; must_tell = false; may_tell = false
    :: else
    fi;
    serve(0);
    late_kind = 0; late_act = 0;
    wrote();
    reached(4)
}

#ifdef KILLS_EARLY
#define may_kill(p) (!is_killed[p] && is_there_for(ref(p, CURRENT)))
#else
#define may_kill(p) (!sure[p] && !is_killed[p] && is_there_for(ref(p, CURRENT)))
#endif

#ifdef TAKES_WITHOUT_KILL
#define take_over \
    :: d_step { hold == ref(0, CURRENT) && !sure[0] && queued > 0 -> may_tell = true; has_died = true; hold = NOBODY; serve(9); wrote() }
#else
#define take_over
#endif

/* Force: the note in the holder's session, then the name.  Somebody may crash between. */
inline break_name(p)
{
    hold = NOBODY;
    is_broken[p] = (at[p] != RELEASES && at[p] != OWES);
    has_died = true;
    must_tell = must_tell || at[p] == INSIDE;
    may_tell = true;
    serve(9);
    wrote()
}

#ifdef NAME_BEFORE_NOTE
#define force(p) \
    :: d_step { forces > 0 && hold == ref(p, CURRENT) && !is_killed[p] -> \
        forces--; is_forcing = true; forced = p; break_name(p) } \
    :: d_step { is_forcing && forced == p -> is_forcing = false; forced = 0; is_noted[p] = true }
#else
#define force(p) \
    :: d_step { forces > 0 && hold == ref(p, CURRENT) && !is_killed[p] && !is_crashed[p] -> \
        forces--; is_forcing = true; forced = p; is_noted[p] = true } \
    :: d_step { is_forcing && forced == p && hold == ref(p, CURRENT) -> is_forcing = false; forced = 0; break_name(p) } \
    :: d_step { is_forcing && forced == p -> is_forcing = false; forced = 0 }
#endif

#define all_through \
    ((is_through[0] || is_crashed[0]) && (is_through[1] || is_crashed[1]) && (PROCS < 3 || is_through[2]))

#if PROCS > 2
#define third process(2)
#else
#define third
#endif

active proctype world()
{
end:
    do
    process(0)
    process(1)
    third
    slot(0)
    slot(1)
    take_over
    force(0)
    :: d_step { may_lose && at[0] == ASKS && sure[0] && !is_there_for(ref(0, CURRENT)) -> lose_answer(ACQUIRE, CURRENT) }
    :: d_step { may_lose && at[0] == RELEASES && must_write(0, CURRENT) -> lose_answer((is_lost_alone[0] -> DIE : RELEASE), CURRENT) }
    :: d_step { may_lose && at[0] == CANCELS && hold != ref(0, CURRENT) && must_write(0, CURRENT) -> lose_answer(RELEASE, CURRENT) }
    :: d_step { may_lose && owes[0] && must_write(0, OWED) -> lose_answer(RELEASE, OWED) }
    :: d_step { may_lose && at[0] == INSIDE && sure[0] && is_told[0] -> lose_answer(MEND, CURRENT) }
    :: d_step { timeouts > 0 && is_running(0) && (at[0] == ASKS || at[0] == WAITS) -> timeouts--; at[0] = CANCELS }
    :: d_step { timeouts > 0 && is_running(0) && (at[0] == ASKS || at[0] == WAITS) && !owes[0] -> timeouts--; at[0] = OWES }
    :: d_step { losses > 0 && box[0] != EMPTY -> losses--; box[0] = EMPTY; box_died[0] = false }
    :: d_step { losses > 0 && box[1] != EMPTY -> losses--; box[1] = EMPTY; box_died[1] = false }
    :: d_step { lapses > 0 && is_running(0) && sure[0] -> lapses--; sure[0] = false }
    :: d_step { crashes > 0 && is_running(0) ->
        crashes--; was_inside[0] = (at[0] == INSIDE && hold == ref(0, CURRENT) && !is_noted[0]);
        is_crashed[0] = true; sure[0] = false; box[0] = EMPTY; box_died[0] = false;
        rename(ref(0, CURRENT), ref(0, GONE)); rename(ref(0, OWED), ref(0, GONE));
        rename_late(CURRENT, GONE); rename_late(OWED, GONE);
        gone_is_dead[0] = is_killed[0] }
    :: d_step { may_kill(0) -> is_killed[0] = true }
    /* N6: a week later nothing is late any more. */
#ifdef DELETES_EARLY
    :: d_step { deletes > 0 && is_there && hold == NOBODY && queued == 0 && !has_died ->
#else
    :: d_step { deletes > 0 && is_there && hold == NOBODY && queued == 0 && !has_died && !late[0].is_used && !late[1].is_used ->
#endif
        deletes--; is_there = false;
#ifdef TOKENS
        token = 0;
#endif
#ifdef ARRIVALS
        arrival = 0;
#endif
        late[0].fits = late[0].is_for_absent; late[1].fits = late[1].is_for_absent }
#ifndef SAFE
    :: timeout -> d_step {
        if
        :: !all_through ->
           rests++; assert(rests <= RESTS); /* REST */
           may_poll[0] = true; may_poll[1] = true; may_poll[2] = true
        :: else -> rests = 0
        fi };
        if
        :: all_through -> break
        :: else
        fi
#endif
    od
}
