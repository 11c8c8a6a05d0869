/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared locks on registers (libdmutex/registers/apply.c): a capacity, of which each hold takes its weight.  A reader
 * takes 1, a writer all; a semaphore's hold takes some.  As long as the head of the queue fits, it holds (N1), so readers
 * come in one after another, and nobody passes a writer that waits.  Certain holds never take more than there is.
 *
 * As in reg_name.pml, certainty is one bit for each process, and swaps of process 0 without an answer wait in slots.
 * With LOSSES the store has lost the holds, or has them from other data: each holder that is certain claims its part
 * (D4).  The mark is quiet once no hold that is not claimed is certain any more, as reg_grace.pml shows.
 */
#ifndef A_PART_SETTLES
#define A_PART_SETTLES 0
#endif
#ifndef CAPACITY
#define CAPACITY 2
#endif
#ifndef W0
#define W0 1
#endif
#ifndef W1
#define W1 1
#endif
#ifndef W2
#define W2 2
#endif
#ifndef ROUNDS
#define ROUNDS 1
#endif
#ifndef UNKNOWNS
#define UNKNOWNS 0
#endif
#ifndef LAPSES
#define LAPSES 0 /* of processes 0 and 2 */
#endif
#ifndef CRASHES
#define CRASHES 0
#endif
#ifndef TIMEOUTS
#define TIMEOUTS 0 /* of process 0 */
#endif
#ifndef LOSSES
#define LOSSES 0
#endif

/* With REACH SPIN is to find a trace to the place of this number. */
#ifdef REACH
#define reached(n) assert(REACH != (n))
#else
#define reached(n) skip
#endif

/* clang-format off */
mtype = { OUT, ASKS, WAITS, INSIDE, RELEASES, CANCELS, ENDED };
mtype = { ACQUIRE, RELEASE };
/* clang-format on */

#define NOBODY 0
#define entry(p) ((p) + 1)      /* in the queue: of the present session */
#define gone_entry(p) ((p) + 4) /* of a former one */
#define process_of(x) ((x) > 3 -> (x) - 4 : (x) - 1)
#define weight(p) ((p) == 0 -> W0 : ((p) == 1 -> W1 : W2))

/* ---- the value ----------------------------------------------------------------------------- */

bool holds[3];       /* by the present session */
bool gone_holds[3];  /* by a former session */
bool other_holds[3]; /* by a session of other data */
byte queue[5], queued;
bool has_died;
bool is_settled = true;

typedef Slot {
    bool is_used, fits, is_over, is_gone; /* the attempt; its session */
    mtype act;
};
Slot late[2];

/* ---- the processes ------------------------------------------------------------------------- */

mtype at[3] = OUT;
byte rounds[3];
bool sure[3] = true, is_killed[3], gone_is_dead[3] = true, is_crashed[3];
bool is_unclaimed[3]; /* inside, by a session of other data */
bool was_inside[3], is_told[3], is_unsettled;
bool must_tell, may_tell;
byte unknowns = UNKNOWNS, lapses = LAPSES, crashes = CRASHES, timeouts = TIMEOUTS, losses = LOSSES;

hidden byte i, j, taken, late_act; /* inside a step */

#define is_running(p) (!is_crashed[p] && at[p] != ENDED)
#define is_queued(x) (queue[0] == (x) || queue[1] == (x) || queue[2] == (x) || queue[3] == (x))
#define is_there_for(p) (holds[p] || is_queued(entry(p)))
#define inside(p) ((at[p] == INSIDE && sure[p]) -> weight(p) : 0)
#define is_dead(x) ((x) > 3 -> gone_is_dead[(x) - 4] : is_killed[(x) - 1])

#define check() assert(inside(0) + inside(1) + inside(2) <= CAPACITY); /* ENOUGH_FOR_ALL */

/* ---- steps on the value -------------------------------------------------------------------- */

inline remove_at(k)
{
    j = k;
    do
    :: j < 4 -> queue[j] = queue[j + 1]; j++
    :: else -> break
    od;
    queue[4] = NOBODY; queued--; j = 0
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

inline count_taken()
{
    taken = 0; i = 0;
    do
    :: i < 3 -> taken = taken + weight(i) * (holds[i] + gone_holds[i] + other_holds[i]); i++
    :: else -> break
    od;
    i = 0
}

/* N12: only a holder of the whole leaves something half written. */
inline note_death(p, did_die_inside)
{
    if
    :: weight(p) == CAPACITY ->
       has_died = true; may_tell = true; must_tell = must_tell || did_die_inside
    :: else
    fi
}

/* N2: each hold dies by its own session. */
inline bury()
{
    i = 0;
    do
    :: i < 3 ->
       if
       :: gone_holds[i] && gone_is_dead[i] ->
          gone_holds[i] = false; note_death(i, was_inside[i]); was_inside[i] = false
#ifdef ONE_DEATH_FREES_ALL
          ; holds[0] = false; holds[1] = false; holds[2] = false
#endif
       :: else
       fi;
       if
       :: holds[i] && is_killed[i] -> holds[i] = false; note_death(i, false)
       :: else
       fi;
       i++
    :: else -> break
    od;
    i = 0;
    do
    :: i < queued && is_dead(queue[i]) -> remove_at(i)
    :: i < queued && !is_dead(queue[i]) -> i++
    :: else -> break
    od;
    i = 0
}

/* D2, D6: quiet, because no hold of other data is certain. */
#define certain_elsewhere(p) (is_unclaimed[p] && at[p] == INSIDE && sure[p])
#ifdef NO_GRACE
#define is_quiet true
#else
#define is_quiet (!certain_elsewhere(0) && !certain_elsewhere(1) && !certain_elsewhere(2))
#endif

inline settle()
{
    if
    :: !is_settled && is_quiet ->
       is_settled = true;
       i = 0;
       do
       :: i < 3 ->
          if
          :: other_holds[i] -> other_holds[i] = false; note_death(i, was_inside[i]); was_inside[i] = false
          :: else
          fi;
          i++
       :: else -> break
       od;
       i = 0
    :: else
    fi
}

inline serve()
{
    count_taken();
    do
    :: is_settled && queued > 0 && taken + weight(process_of(queue[0])) <= CAPACITY ->
       i = process_of(queue[0]);
       holds[i] = holds[i] || queue[0] < 4; gone_holds[i] = gone_holds[i] || queue[0] > 3;
       taken = taken + weight(i);
       i = 0;
       remove_at(0)
    :: else -> break
    od;
    assert(!is_settled || taken <= CAPACITY);
    taken = 0
}

inline wrote()
{
    late[0].fits = false; late[1].fits = false;
    check()
}

inline apply(p, act)
{
    settle();
    bury();
    if
    :: act == ACQUIRE && !is_there_for(p) -> queue[queued] = entry(p); queued++
    :: act == RELEASE -> holds[p] = false; leave_queue(entry(p))
    :: else
    fi;
    serve();
    wrote();
    is_unsettled = is_unsettled && p != 0
}

/* D4: a part that is claimed leaves the doubt, so the other holders can claim theirs. */
inline claim(p)
{
    other_holds[p] = false; holds[p] = true; is_unclaimed[p] = false;
    count_taken();
    i = 0;
    do /* holds of other data make way */
    :: i < 3 && taken > CAPACITY ->
       taken = taken - weight(i) * other_holds[i];
       other_holds[i] = false;
       i++
    :: else -> break
    od;
    i = 0; taken = 0;
    if
    :: weight(p) == CAPACITY || A_PART_SETTLES ->
       is_settled = true; other_holds[0] = false; other_holds[1] = false; other_holds[2] = false
    :: else
    fi;
    serve();
    wrote();
    reached(4)
}

/* ---- the processes ------------------------------------------------------------------------- */

inline end_late(p)
{
    if
    :: p == 0 -> late[0].is_over = late[0].is_used; late[1].is_over = late[1].is_used
    :: else
    fi
}

/* The process goes on with another session; S7. */
inline leave_session(p)
{
    gone_holds[p] = gone_holds[p] || holds[p]; holds[p] = false;
    i = 0;
    do
    :: i < queued -> queue[i] = (queue[i] == entry(p) -> gone_entry(p) : queue[i]); i++
    :: else -> break
    od;
    i = 0;
    if
    :: p == 0 -> late[0].is_gone = late[0].is_used; late[1].is_gone = late[1].is_used
    :: else
    fi;
    gone_is_dead[p] = is_killed[p]; is_killed[p] = false; sure[p] = true; is_told[p] = false
}

inline lose(p)
{
    was_inside[p] = holds[p] || other_holds[p];
    is_unclaimed[p] = false;
    leave_session(p);
    at[p] = OUT; rounds[p]++;
    reached(2)
}

#define process(p) \
    :: d_step { is_running(p) && at[p] == OUT && rounds[p] == ROUNDS -> at[p] = ENDED } \
    :: d_step { is_running(p) && at[p] == OUT && rounds[p] < ROUNDS && sure[p] -> at[p] = ASKS } \
    :: d_step { is_running(p) && (at[p] == ASKS || at[p] == WAITS) && sure[p] && !is_there_for(p) -> \
        apply(p, ACQUIRE); at[p] = WAITS } \
    :: d_step { is_running(p) && at[p] == ASKS && is_there_for(p) -> at[p] = WAITS } \
    /* a poll that serves, buries or settles */ \
    :: d_step { is_running(p) && at[p] == WAITS && sure[p] && is_queued(entry(p)) -> apply(p, ACQUIRE) } \
    :: d_step { is_running(p) && at[p] == WAITS && sure[p] && holds[p] && (is_settled || is_quiet) -> \
        at[p] = INSIDE; is_told[p] = has_died; \
        check(); \
        if \
        :: weight(p) == CAPACITY -> assert((!must_tell || is_told[p]) && (!is_told[p] || may_tell)) /* DEATHS */ \
        :: inside(0) + inside(1) + inside(2) == 2 && weight(p) == 1 -> reached(1) \
        :: else \
        fi } \
    :: d_step { is_running(p) && at[p] != INSIDE && !sure[p] && !is_killed[p] -> sure[p] = true } \
    :: d_step { is_running(p) && at[p] != INSIDE && is_killed[p] -> leave_session(p); at[p] = OUT } \
    :: d_step { is_running(p) && at[p] == INSIDE && !sure[p] -> lose(p) } \
    :: d_step { is_running(p) && at[p] == INSIDE && sure[p] && is_unclaimed[p] && !is_settled -> claim(p) } \
    :: d_step { is_running(p) && at[p] == INSIDE && sure[p] && !is_unclaimed[p] -> at[p] = RELEASES } \
    :: d_step { is_running(p) && at[p] == RELEASES && (is_there_for(p) || (p == 0 && is_unsettled)) -> \
        if \
        :: weight(p) == CAPACITY && holds[p] && is_told[p] -> has_died = false; must_tell = false; may_tell = false \
        :: else \
        fi; \
        apply(p, RELEASE); is_told[p] = false; at[p] = OUT; rounds[p]++; end_late(p) } \
    :: d_step { is_running(p) && at[p] == RELEASES && !is_there_for(p) && !(p == 0 && is_unsettled) -> \
        is_told[p] = false; at[p] = OUT; rounds[p]++; end_late(p) } \
    :: d_step { !gone_is_dead[p] -> gone_is_dead[p] = true } \
    :: d_step { may_kill(p) -> is_killed[p] = true }

#ifdef KILLS_EARLY
#define may_kill(p) (!is_killed[p] && is_there_for(p))
#else
#define may_kill(p) (!is_killed[p] && !sure[p] && is_there_for(p))
#endif

/* N5 */
#ifdef CANCELS_BY_LOOKING
#define must_write is_there_for(0)
#else
#define must_write (is_there_for(0) || is_unsettled)
#endif

inline forget_late(k)
{
    late[k].is_used = false; late[k].fits = false; late[k].is_over = false; late[k].is_gone = false; late[k].act = 0
}

inline lose_answer(what)
{
    unknowns--; is_unsettled = true;
    i = (late[0].is_used -> 1 : 0);
    late[i].is_used = true; late[i].fits = true; late[i].act = what;
    i = 0
}

#define slot(k) \
    :: d_step { late[k].is_used && late[k].fits -> \
        assert(!(late[k].act == ACQUIRE && late[k].is_over && !late[k].is_gone)); /* NOTHING_STAYS */ \
        run_late(k) } \
    :: d_step { late[k].is_used -> forget_late(k) }

inline run_late(k)
{
    late_act = late[k].act;
    settle();
    bury();
    if
    :: late_act == ACQUIRE && !late[k].is_gone && !is_there_for(0) -> queue[queued] = entry(0); queued++
    :: late_act == ACQUIRE && late[k].is_gone -> queue[queued] = gone_entry(0); queued++
    :: late_act == RELEASE && !late[k].is_gone -> holds[0] = false; leave_queue(entry(0))
    :: late_act == RELEASE && late[k].is_gone -> gone_holds[0] = false; leave_queue(gone_entry(0))
    :: else
    fi;
    late_act = 0;
    forget_late(k);
    serve();
    wrote();
    reached(3)
}

#define may_lose (unknowns > 0 && is_running(0) && (!late[0].is_used || !late[1].is_used))

inline crash(p)
{
    crashes--;
    was_inside[p] = at[p] == INSIDE && (holds[p] || other_holds[p]);
    is_crashed[p] = true; sure[p] = false; is_unclaimed[p] = false;
    leave_session(p);
    sure[p] = false; at[p] = ENDED
}

/* The holds are gone, or are of other data; nobody stands in line there any more (D6). */
inline lose_data(is_copy)
{
    losses--;
    is_settled = false; is_unsettled = false;
    forget_late(0); forget_late(1);
    i = 0;
    do
    :: i < 3 ->
       other_holds[i] = is_copy && (holds[i] || gone_holds[i]);
       is_unclaimed[i] = at[i] == INSIDE;
       holds[i] = false; gone_holds[i] = false; is_killed[i] = false; gone_is_dead[i] = true;
       at[i] = (at[i] == RELEASES || at[i] == CANCELS -> OUT : at[i]);
       i++
    :: else -> break
    od;
    i = 0;
    queue[0] = NOBODY; queue[1] = NOBODY; queue[2] = NOBODY; queue[3] = NOBODY; queued = 0;
    has_died = has_died && is_copy; must_tell = must_tell && is_copy; may_tell = true
}

active proctype world()
{
end:
    do
    process(0)
    process(1)
    process(2)
    slot(0)
    slot(1)
    :: d_step { may_lose && at[0] == ASKS && sure[0] && !is_there_for(0) -> lose_answer(ACQUIRE) }
    :: d_step { may_lose && (at[0] == RELEASES || at[0] == CANCELS) && must_write -> lose_answer(RELEASE) }
    :: d_step { timeouts > 0 && is_running(0) && (at[0] == ASKS || (at[0] == WAITS && !holds[0])) -> timeouts--; at[0] = CANCELS }
    :: d_step { is_running(0) && at[0] == CANCELS && must_write ->
        apply(0, RELEASE); at[0] = OUT; rounds[0]++; end_late(0) }
    :: d_step { is_running(0) && at[0] == CANCELS && !must_write -> at[0] = OUT; rounds[0]++; end_late(0) }
    :: d_step { lapses > 0 && is_running(0) && sure[0] -> lapses--; sure[0] = false }
    :: d_step { lapses > 0 && is_running(2) && sure[2] -> lapses--; sure[2] = false }
    :: d_step { crashes > 0 && is_running(0) -> crash(0) }
    :: d_step { crashes > 0 && is_running(2) -> crash(2) }
    :: d_step { losses > 0 -> lose_data(true) }
    :: d_step { losses > 0 -> lose_data(false) }
    od
}
