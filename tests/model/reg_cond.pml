/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Conditions on registers (libdmutex/registers/apply.c, rules C1 to C6): the sleepers are in the mutex's own value.
 *
 * Process 0 puts ITEMS items, one after the other, and signals after each, or once at the end (BROADCAST).  Processes
 * 1 and 2 want one item each, and sleep while there is none.  Nobody may sleep for ever beside an item.
 *
 * A step is a swap that takes effect; one that meets a conflict changes nothing and is done again.  A swap without an
 * answer has taken effect, or has not, and is repeated (UNKNOWNS, of signals: the other steps find the place of their
 * attempt, so repeating them changes nothing).  reg_name.pml has the late swaps.  Time is the steps that must come some
 * day: polls, and the death of a crashed process's session.
 */
#ifndef ITEMS
#define ITEMS 2
#endif
#ifndef CRASHES
#define CRASHES 0 /* of process 1 */
#endif
#ifndef TIMEOUTS
#define TIMEOUTS 0 /* of its wait */
#endif
#ifndef UNKNOWNS
#define UNKNOWNS 0 /* signals without an answer */
#endif
#ifndef REBINDS
#define REBINDS 0 /* another process takes the condition for another mutex */
#endif
#ifndef CONSUMERS
#define CONSUMERS 2
#endif
#ifndef ONE_IN_A_BROADCAST
#define ONE_IN_A_BROADCAST 0
#endif
#define NOBODY 3
#define QUEUE 0
#define SLEEPERS 3

/* With REACH SPIN is to find a trace to the place of this number. */
#ifdef REACH
#define reached(n) assert(REACH != (n))
#else
#define reached(n) skip
#endif

/* clang-format off */
mtype = { OUT, LOCKS, INSIDE, LOOKS, SIGNALS, UNLOCKS, BOUND, WAITS, ENDED };
/* clang-format on */

/* ---- the mutex's value: the holder, the queue, the sleepers -------------------------------- */

byte hold = NOBODY;
byte list[6] = NOBODY, queued, asleep; /* from QUEUE on, and from SLEEPERS on */
bool carries[3]; /* the signal by which it left the condition, until it unlocks */

/* ---- the condition's binding, a value of its own ------------------------------------------- */

bool is_bound_here = true;
bool knows_binding[3]; /* the version that the consumer saw is still the present one */
bool is_rebinding;

/* ---- the processes ------------------------------------------------------------------------- */

mtype at[3] = OUT;
byte put, items, taken;
bool is_crashed, is_dead; /* process 1, and its session */
bool has_timed_out;       /* it returns ETIMEDOUT, and does not look again */
bool is_repeated;         /* the signal's first try had no answer */
bool is_meant[3];         /* by the repetition */
byte crashes = CRASHES, timeouts = TIMEOUTS, unknowns = UNKNOWNS, rebinds = REBINDS;

hidden byte x, i, owed, found; /* inside a step */

#define is_alive(p) (!((p) == 1 && is_crashed))
#define is_listed(p, from) (list[from] == (p) || list[from + 1] == (p) || list[from + 2] == (p))
#define waits(p) is_listed(p, QUEUE)
#define sleeps(p) is_listed(p, SLEEPERS)
#define has_place(p) (hold == (p) || waits(p) || sleeps(p))

/* ---- steps on the value -------------------------------------------------------------------- */

inline enqueue(p)
{
    list[QUEUE + queued] = p; queued++
}

inline leave_list(from, count, p)
{
    i = 0;
    do
    :: i < 3 && list[from + i] != p -> i++
    :: else -> break
    od;
    if
    :: i < 3 ->
       do
       :: i < 2 -> list[from + i] = list[from + i + 1]; i++
       :: else -> break
       od;
       list[from + 2] = NOBODY; count--
    :: else
    fi;
    i = 0
}

/* N1. */
inline serve()
{
    if
    :: hold == NOBODY && queued > 0 -> hold = list[QUEUE]; leave_list(QUEUE, queued, hold)
    :: else
    fi
}

inline wake(p, is_signal)
{
    leave_list(SLEEPERS, asleep, p);
    enqueue(p);
    carries[p] = is_signal;
    is_meant[p] = false
}

/* C3: a signal whose carrier has left goes to the next sleeper. */
inline pass_signal_on()
{
#ifndef SIGNALS_DIE
    if
    :: owed > 0 && asleep > 0 -> x = list[SLEEPERS]; wake(x, true); reached(2)
    :: else
    fi;
#endif
    owed = 0; x = 0
}

/* An end that is no unlock: the signal is owed. */
inline leave(p)
{
    owed = carries[p]; carries[p] = false;
    leave_list(QUEUE, queued, p);
    leave_list(SLEEPERS, asleep, p);
    hold = (hold == p -> NOBODY : hold);
    pass_signal_on()
}

/* C2: an unlock uses the signal up. */
inline unlock(p)
{
    carries[p] = false; hold = NOBODY; serve()
}

/* ---- signals ------------------------------------------------------------------------------- */

/*
 * Which sleepers a repetition may wake: those that slept at the first try.  The first try may have taken effect, and
 * then the repetition wakes one more, in vain, as it may.  It may have been lost, and the sleeper that it was for may
 * have come to its deadline meanwhile, so the repetition must not be for this one alone.
 */
inline mean()
{
    i = 0;
    do
    :: i < asleep ->
#ifdef SIGNAL_MEANS_ONE
       is_meant[list[SLEEPERS + i]] = (i == 0);
#else
       is_meant[list[SLEEPERS + i]] = true;
#endif
       i++
    :: else -> break
    od;
    i = 0
}

#define is_for(p) (!is_repeated || is_meant[p])

/* Wakes the first sleeper that is meant, if there is any. */
inline signal_one()
{
    x = NOBODY; i = 0;
    do
    :: i < asleep && x == NOBODY -> x = (is_for(list[SLEEPERS + i]) -> list[SLEEPERS + i] : NOBODY); i++
    :: else -> break
    od;
    i = 0;
    found = (x != NOBODY);
    if
    :: found -> wake(x, true)
    :: else
    fi;
    x = 0;
    serve()
}

inline forget_signal()
{
    is_repeated = false; is_meant[1] = false; is_meant[2] = false
}

/* ---- all steps ----------------------------------------------------------------------------- */

#ifdef SIGNALS_OUTSIDE
#define after_put UNLOCKS
#define after_signal OUT
#define after_unlock LOOKS
#else
#define after_put LOOKS
#define after_signal UNLOCKS
#define after_unlock OUT
#endif
#ifdef BROADCAST
#define is_time_to_signal (put == ITEMS)
#else
#define is_time_to_signal true
#endif

#define producer \
    :: d_step { at[0] == OUT && put < ITEMS -> enqueue(0); serve(); at[0] = LOCKS } \
    :: d_step { at[0] == OUT && put == ITEMS -> at[0] = ENDED } \
    :: d_step { at[0] == LOCKS && hold == 0 -> \
        put++; items++; at[0] = (is_time_to_signal -> after_put : UNLOCKS) } \
    :: d_step { at[0] == UNLOCKS -> unlock(0); at[0] = (is_time_to_signal -> after_unlock : OUT) } \
    /* C5: to which mutex does the condition belong now? */ \
    :: d_step { at[0] == LOOKS -> \
        if \
        :: is_bound_here -> at[0] = SIGNALS \
        :: !is_bound_here && asleep > 0 -> at[0] = after_signal; reached(3) \
        :: else -> at[0] = after_signal \
        fi } \
    signalling

#ifdef BROADCAST
/* One sleeper in each swap, which stands for as many as fit into one. */
#define signalling \
    :: d_step { at[0] == SIGNALS && !is_repeated -> mean(); is_repeated = true } \
    :: d_step { at[0] == SIGNALS && is_repeated -> \
        signal_one(); \
        if \
        :: !found || ONE_IN_A_BROADCAST -> forget_signal(); at[0] = after_signal \
        :: else \
        fi; \
        found = 0 }
#else
#define signalling \
    :: d_step { at[0] == SIGNALS -> signal_one(); found = 0; forget_signal(); at[0] = after_signal } \
    :: d_step { at[0] == SIGNALS && unknowns > 0 && asleep > 0 && !is_repeated -> \
        unknowns--; mean(); is_repeated = true; reached(6) } \
    :: d_step { at[0] == SIGNALS && unknowns > 0 && asleep > 0 && !is_repeated -> \
        unknowns--; mean(); signal_one(); found = 0; is_repeated = true }
#endif

#ifdef TWO_SWAPS
#define go_to_sleep(p) \
    :: d_step { at[p] == BOUND && is_alive(p) && hold == p -> unlock(p) } \
    :: d_step { at[p] == BOUND && is_alive(p) && hold != p -> list[SLEEPERS + asleep] = p; asleep++; at[p] = WAITS }
#else
/* C1. */
#define go_to_sleep(p) \
    :: d_step { at[p] == BOUND && is_alive(p) -> list[SLEEPERS + asleep] = p; asleep++; unlock(p); at[p] = WAITS }
#endif

/* C5: a sleeper compares the version of the binding. */
#ifdef SLEEPS_ON
#define look_at_binding(p)
#else
#define look_at_binding(p) \
    :: d_step { at[p] == WAITS && is_alive(p) && sleeps(p) && !knows_binding[p] -> wake(p, false); serve(); reached(4) }
#endif

#define consumer(p) \
    :: d_step { at[p] == OUT && is_alive(p) -> enqueue(p); serve(); at[p] = WAITS } \
    :: d_step { at[p] == WAITS && is_alive(p) && hold == p -> at[p] = INSIDE } \
    :: d_step { at[p] == INSIDE && is_alive(p) && items > 0 && !(has_timed_out && p == 1) -> \
        items--; taken++; unlock(p); at[p] = ENDED } \
    :: d_step { at[p] == INSIDE && is_alive(p) && has_timed_out && p == 1 -> unlock(p); at[p] = ENDED } \
    :: d_step { at[p] == INSIDE && is_alive(p) && items == 0 && !(has_timed_out && p == 1) -> \
        if \
        :: !is_bound_here -> is_bound_here = true; knows_binding[1] = false; knows_binding[2] = false \
        :: else \
        fi; \
        knows_binding[p] = true; at[p] = BOUND } \
    go_to_sleep(p) \
    look_at_binding(p)

/* C6: who may find the dead process 1.  A waiter watches those before it. */
#ifdef SLEEPERS_DO_NOT_WATCH
#define watches(p) (is_alive(p) && waits(p))
#else
#define watches(p) (is_alive(p) && (waits(p) || sleeps(p)))
#endif

active proctype world()
{
    do
    producer
    consumer(1)
#if CONSUMERS > 1
    consumer(2)
#endif
    /* C4: at the deadline the value decides. */
    :: d_step { timeouts > 0 && at[1] == WAITS && is_alive(1) && sleeps(1) ->
        timeouts--; has_timed_out = true; wake(1, false); serve() }
    :: d_step { timeouts > 0 && at[1] == WAITS && is_alive(1) && !sleeps(1) && carries[1] ->
        timeouts--;
        reached(5);
#ifdef TIMEOUT_KEEPS_THE_SIGNAL
        has_timed_out = true
#endif
        }
    :: d_step { crashes > 0 && !is_crashed && at[1] != ENDED -> crashes--; is_crashed = true }
    :: d_step { is_crashed && !is_dead -> is_dead = true }
    :: d_step { is_dead && has_place(1) && (watches(0) || watches(2)) -> leave(1); serve() }
    /* A lock of which the dead one holds the whole is also freed by whoever asks for it. */
    :: d_step { is_dead && hold == 1 && at[0] == OUT && put < ITEMS -> leave(1); serve() }
    /* Another process: no sleepers here?  Swaps the binding, looks again, and swaps it back if there are. */
    :: d_step { rebinds > 0 && is_bound_here && asleep == 0 && !is_rebinding -> rebinds--; is_rebinding = true }
    :: d_step { is_rebinding && is_bound_here ->
        is_bound_here = false; knows_binding[1] = false; knows_binding[2] = false }
    :: d_step { is_rebinding && !is_bound_here ->
        is_rebinding = false;
        if
        :: asleep > 0 -> is_bound_here = true; knows_binding[1] = false; knows_binding[2] = false
        :: else
        fi }
    :: timeout -> break
    od;
    /* Nothing can happen any more. */
    assert(at[0] == ENDED);
    assert(queued == 0 && (hold == NOBODY || !is_alive(hold))); /* NOBODY_WAITS */
    assert(!(items > 0 && (sleeps(2) || (sleeps(1) && is_alive(1))))); /* NOBODY_SLEEPS_BESIDE_AN_ITEM */
    assert(taken == ITEMS || CRASHES > 0 || TIMEOUTS > 0)
}
