/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A condition variable: wait, signal, broadcast, timeout, cancellation, death, and the debts of signals that died.
 * Consumers wait until there is an item; the producer, the last client, makes an item for each consumer, or ITEMS
 * items.  doc/design/models.md lists the parts left out.
 *
 * There is no clock: lock.pml models certainty, so a live owner's lease does not end here.  Time passes when no client
 * can do anything at once: then the lease of a dead owner ends, dead waiters are passed over and forgotten, and live
 * waiters poll.  With POLLS live waiters poll at other times too.
 *
 * With KEEPS, a set of clients in bits, the process of such a client keeps the lease after an unlock, without an end,
 * until the process hears that another attempt wants the mutex.  A consumer then takes ROUNDS items, one hold each, and
 * a kept lease is locked again without a message.  Kept leases are renewed when time passes; not with NO_RENEWALS.
 */
#ifndef CONSUMERS
#define CONSUMERS 2
#endif
#define CLIENTS (CONSUMERS + 1)
#define PRODUCER CONSUMERS
/* Numbers of events, at most; kills, pauses, timeouts and cancellations hit consumers only. */
#ifndef KILLS
#define KILLS 0
#endif
#ifndef PAUSES
#define PAUSES 0 /* a live waiter is not heard from for a while: SILENT; twice: GONE */
#endif
#ifndef TIMEOUTS
#define TIMEOUTS 0
#endif
#ifndef CANCELS
#define CANCELS 0
#endif
#ifndef BREAKS
#define BREAKS 0
#endif
#ifndef DEAFS
#define DEAFS 0
#endif
#ifndef LOSSES
#define LOSSES 0
#endif
#ifndef POLLS
#define POLLS 0
#endif
#ifndef RESTARTS
#define RESTARTS 0
#endif
#ifndef ROUNDS
#define ROUNDS 1
#endif
#ifndef ITEMS
#define ITEMS (CONSUMERS * ROUNDS)
#endif
#ifdef BROADCAST
#define PORTION ITEMS /* items made at once */
#ifdef BROADCAST_WAKES_ONE
#define MOST 1
#else
#define MOST 255 /* waiters signalled at once */
#endif
#else
#define PORTION 1
#define MOST 1
#endif
#ifdef CANCEL_KEEPS_THE_SIGNAL
#define HAS_PASSING_ON false
#else
#define HAS_PASSING_ON true
#endif
#ifdef SIGNALLED_IS_GRANTED
#define SIGNALLED_IS HELD
#else
#define SIGNALLED_IS QUEUED
#endif
#ifdef TIMEOUT_KEEPS_THE_SIGNAL
#define IS_SIGNALLED(answer) false
#else
#define IS_SIGNALLED(answer) (answer)
#endif
#ifndef PIPE
#define PIPE 3
#endif
#ifndef LETTERS
#define LETTERS 4
#endif
#define PLACES (CLIENTS + 2)
#define ATTEMPTS 7
#define SILENT 1
#define GONE 2

/* With REACH SPIN must find a trace to the place of this number, which shows that the runs get there. */
#ifdef REACH
#define reached(n) assert(REACH != (n))
#else
#define reached(n) skip
#endif

#ifndef ONLY
#define EXCLUSION
#define ONE_PLACE
#define SIGNAL_MOVES
#define WITH_MUTEX
#endif

/* clang-format off */
mtype = { ACQUIRE, RELEASE, POLL, COND_WAIT, COND_SIGNAL, COND_CANCEL, ENQUEUE, RENEW };
mtype = { OWNED, QUEUED_AT, ON_CONDITION, UNKNOWN, NOT_OWNER, DONE_SO };
mtype = { GRANTED, SIGNALLED, WANTED };
mtype = { ASKING, WAITING, QUEUED, HELD, LEAVING, OVER, KEPT };
mtype = { ASKS, AWAITS, SLEEPS, INSIDE, LEAVES, LEFT, STOPS_WAITING, STOPPED, SIGNALS, PASSES_ON, PASSED, ENDED };
/* clang-format on */

#define id_of(c, a) (((c) + 1) * 8 + (a))
#define client_of(id) ((id) / 8 - 1)
#define attempt_of(id) ((id) % 8)
#define bit(a) (1 << (a))

/* ---- the server ---------------------------------------------------------------------------- */

byte hold;            /* in state: the hold not released yet; 0: none */
bool is_carried;      /* the hold came by a signal */
bool is_held;         /* the lock is there */
#ifdef KEEPS
bool is_marked;       /* the hold has the mark: its process hears of waiters */
#define is_of_marked (hold != 0 && is_marked)
#else
#define is_of_marked false
#endif
byte debts;
typedef Place { byte id, heard; bool is_carrier };
typedef List { Place at[PLACES]; byte count };
List list[2];
#define MUTEX 0 /* the queue of the mutex */
#define CONDITION 1
#define queue list[MUTEX].at
#define waiting list[MUTEX].count
#define sleeper list[CONDITION].at
#define sleeping list[CONDITION].count

/* ---- a client ------------------------------------------------------------------------------ */

typedef Client {
    mtype phase = ASKING;
    mtype thread = ASKS;
    byte attempt = 1;
    byte leaving;        /* the attempt with the hold to give up; 0: none */
    byte owed, posted;
    bool is_by_condition; /* the claim has a condition: waits there, or came from there */
    bool has_unanswered; /* a cond_wait, which may have been executed */
    bool is_given_up;    /* timed out or cancelled: does not wait again */
    bool is_cancelled;
    bool is_signalled;   /* the signal came before the cancellation */
    bool was_asked, was_waiting; /* a request to stop waiting had no answer; waited at the last such request */
    bool is_polling, is_poll_due, is_poll_newest;
    bool is_up = 1;
    bool is_hearing = 1, is_misheard;
    bool is_dead;
#ifdef KEEPS
    bool has_kept; /* the hold was kept once: its renewals carry the mark */
    bool is_wanted, is_renewal_due;
    byte rounds = ROUNDS;
#endif
};
Client k[CLIENTS];
chan command[CLIENTS] = [PIPE] of { mtype, byte, byte };
chan reply[CLIENTS] = [PIPE] of { mtype, mtype, byte, bool };
chan inbox[CLIENTS] = [LETTERS] of { mtype, byte };

byte items, made;
byte kills = KILLS, pauses = PAUSES, timeouts = TIMEOUTS, cancels = CANCELS, breaks = BREAKS, deafs = DEAFS,
     losses = LOSSES, polls = POLLS, restarts = RESTARTS;

hidden byte i, j, n, id, other, winner, moved, deaf, most, heard, carried, flag;
hidden mtype op, said, kind;

#define is_kept(c) (k[c].phase == KEPT)
#define believes(c) ((k[c].phase == HELD || is_kept(c)) && !k[c].is_dead)

inline check()
{
    i = 0;
    do
    :: i < CLIENTS ->
#ifdef EXCLUSION
        j = i + 1;
        do
        :: j < CLIENTS -> assert(!(believes(i) && believes(j))); j++
        :: else -> break
        od;
#endif
        i++
    :: else -> break
    od
}

/* ---- the scripts --------------------------------------------------------------------------- */

inline remove(which, place)
{
    j = place;
    list[which].count--;
    do
    :: j < list[which].count ->
        list[which].at[j].id = list[which].at[j + 1].id;
        list[which].at[j].heard = list[which].at[j + 1].heard;
        list[which].at[j].is_carrier = list[which].at[j + 1].is_carrier;
        j++
    :: else -> break
    od;
    list[which].at[j].id = 0;
    list[which].at[j].heard = 0;
    list[which].at[j].is_carrier = 0
}

/* Sets n to the place of an id, or to the count. */
inline find(which, who)
{
    n = 0;
    do
    :: n < list[which].count && list[which].at[n].id != who -> n++
    :: else -> break
    od
}

inline add(which, who, carrier)
{
    assert(list[which].count < PLACES);
    list[which].at[list[which].count].id = who;
    list[which].at[list[which].count].heard = 0;
    list[which].at[list[which].count].is_carrier = carrier;
    list[which].count++
}

/* _serve.lua owe_signal() */
inline owe_signal()
{
#ifdef NO_DEBTS
    skip
#else
    debts++
#endif
}

/* _serve.lua leave(): removes place n of the queue. */
inline leave()
{
    if
    :: queue[n].is_carrier -> owe_signal()
    :: else
    fi;
    remove(MUTEX, n)
}

/* _tell.lua tell(): heard by the count of PUBSUB NUMSUB. */
inline tell(what, who)
{
    heard = k[client_of(who)].is_hearing;
    if
    :: heard && k[client_of(who)].is_misheard -> k[client_of(who)].is_misheard = 0
    :: heard && !k[client_of(who)].is_misheard && !k[client_of(who)].is_dead ->
        assert(len(inbox[client_of(who)]) < LETTERS);
        inbox[client_of(who)]!what, attempt_of(who)
    :: else
    fi
}

/* The process of a marked hold learns that an attempt waits: the first attempt of the queue only. */
inline tell_owner()
{
    skip;
#ifdef KEEPS
    if
    :: waiting == 1 && is_of_marked -> tell(WANTED, hold)
    :: else
    fi
#endif
}

inline unmark()
{
    skip;
#ifdef KEEPS
    is_marked = 0
#endif
}

/* _serve.lua serve(), _handover.lua and _offer.lua */
inline serve(me)
{
    winner = 0;
    n = 0;
    do
    :: n < waiting && winner == 0 ->
        if
        :: queue[n].id != me && queue[n].heard >= GONE -> leave()
        :: queue[n].id != me && queue[n].heard == SILENT -> n++
        :: else ->
            heard = 1;
            if
            :: queue[n].id != me -> tell(GRANTED, queue[n].id)
            :: else
            fi;
            if
            :: heard ->
                winner = queue[n].id;
                hold = winner;
                is_held = 1;
                is_carried = queue[n].is_carrier;
                unmark();
                remove(MUTEX, n)
            :: else -> n++
            fi
        fi
    :: else -> break
    od
}

/* _base.lua end_hold() */
inline give_up()
{
    hold = 0;
    is_held = 0;
    is_carried = 0;
    unmark()
}

/* _serve.lua note_death() */
inline note_death()
{
    if
    :: hold != 0 && !is_held ->
        if
        :: is_carried -> owe_signal()
        :: else
        fi;
        give_up()
    :: else
    fi
}

/* _condition.lua move(): moves place i of the condition to the queue. */
inline move(carrier)
{
    other = sleeper[i].id;
    remove(CONDITION, i);
#ifndef NO_MORPHING
    add(MUTEX, other, carrier);
#ifndef MOVED_WITHOUT_WANTED
    if
    :: waiting == 1 && is_of_marked -> reached(3)
    :: else
    fi;
    tell_owner()
#endif
#endif
}

/* _condition.lua signal(): moves up to `most` waiters. */
inline signal()
{
    moved = 0;
    deaf = 0;
    i = 0;
    do
    :: i < sleeping && moved < most ->
        if
        :: sleeper[i].heard >= GONE -> remove(CONDITION, i)
        :: else ->
            heard = 0;
            if
            :: most > 1 || sleeper[i].heard < SILENT -> tell(SIGNALLED, sleeper[i].id)
            :: else
            fi;
            if
            :: most > 1 || heard -> move(1); moved++
            :: else -> deaf = (deaf == 0 -> sleeper[i].id : deaf); i++
            fi
        fi
    :: else -> break
    od;
    if
    :: moved == 0 && deaf != 0 ->
        find(CONDITION, deaf);
        i = n;
        move(1);
        moved = 1
    :: else
    fi
}

inline pay_debts()
{
    if
    :: debts > 0 -> most = debts; signal(); debts = 0
    :: else
    fi
}

inline acquire()
{
    if
    :: hold == id -> is_held = 1; said = OWNED
    :: else ->
        /* other: pending releases, done first; no pending release is a death */
        j = 1;
        do
        :: j < ATTEMPTS ->
            if
            :: (other & bit(j)) && hold == id_of(client_of(id), j) -> give_up()
            :: (other & bit(j)) && hold != id_of(client_of(id), j) ->
                carried = j;
                find(MUTEX, id_of(client_of(id), carried));
                if
                :: n < waiting -> leave()
                :: else
                fi;
                j = carried
            :: else
            fi;
            j++
        :: else -> break
        od;
        note_death();
        find(MUTEX, id);
        if
        :: n < waiting -> queue[n].heard = 0
        :: else -> add(MUTEX, id, 0); tell_owner()
        fi;
        winner = 0;
        if
        :: !is_held -> serve(id)
        :: else
        fi;
        said = (winner == id -> OWNED : QUEUED_AT)
    fi
}

#ifdef KEEPS
/* renew.lua: the renewal of a hold that was kept has the mark. */
inline renew()
{
    said = NOT_OWNER;
    if
    :: hold == id ->
        is_held = 1;
#ifndef NO_MARK
        is_marked = 1;
#endif
        flag = waiting > 0;
        said = OWNED
    :: else
    fi
}
#endif

inline release()
{
    said = DONE_SO;
    if
    :: hold == id -> give_up(); serve(0)
    :: else ->
        find(MUTEX, id);
        if
        :: n < waiting -> leave()
        :: else
        fi;
        find(CONDITION, id);
        if
        :: n < sleeping -> remove(CONDITION, n)
        :: else
        fi
    fi
}

inline poll()
{
    flag = 0;
    if
    :: hold == id -> is_held = 1; said = OWNED
    :: else ->
        note_death();
        find(CONDITION, id);
        if
        :: n < sleeping -> sleeper[n].heard = 0; pay_debts()
        :: else
        fi;
        find(MUTEX, id);
        said = (n < waiting -> QUEUED_AT : UNKNOWN);
        if
        :: n < waiting ->
            queue[n].heard = 0;
#ifdef POLL_DROPS_THE_SIGNAL
            queue[n].is_carrier = 0
#endif
        :: else
        fi;
        winner = 0;
        if
        :: !is_held -> other = (said == QUEUED_AT -> id : 0); serve(other)
        :: else
        fi;
        find(CONDITION, id);
        if
        :: winner == id -> said = OWNED
        :: winner != id && n < sleeping -> said = ON_CONDITION
        :: else
        fi
    fi
}

/* id: the waiting attempt; other: the hold. */
inline cond_wait()
{
    find(CONDITION, id);
    if
#ifndef WAITS_TWICE
    :: n < sleeping -> sleeper[n].heard = 0; said = ON_CONDITION
#endif
    :: else ->
        find(MUTEX, id);
        if
        :: hold == id -> is_held = 1; said = OWNED
        :: hold != id && n < waiting -> queue[n].heard = 0; said = QUEUED_AT
#ifndef WAITS_WHOEVER_OWNS
        :: hold != id && n == waiting && hold != other -> said = NOT_OWNER
#endif
        :: else ->
#ifndef ENQUEUE_AFTER_RELEASE
            if
            :: sleeping == 0 -> debts = 0
            :: else
            fi;
            add(CONDITION, id, 0);
#endif
            give_up();
            serve(0);
            said = ON_CONDITION
        fi
    fi
}

inline cond_signal()
{
    note_death();
#ifdef SIGNAL_MOVES
    carried = 0; /* here bits: 1: there is a waiter not gone; 2: there is a waiter that can be reached */
    i = 0;
    do
    :: i < sleeping ->
        carried = carried | (sleeper[i].heard < GONE) | ((sleeper[i].heard == 0 && k[client_of(sleeper[i].id)].is_hearing) << 1);
        i++
    :: else -> break
    od;
#endif
    most = other;
#ifdef SIGNAL_TO_THE_FIRST
    moved = 0;
    i = 0;
    if
    :: sleeping > 0 -> tell(SIGNALLED, sleeper[0].id); move(1); moved = 1
    :: else
    fi;
#else
    signal();
#endif
#ifdef SIGNAL_MOVES /* I7 */
    if
    :: carried -> assert(moved > 0)
    :: else
    fi;
    if
    :: (carried & 2) && most == 1 -> /* and the moved waiter hears */
        n = waiting - 1;
#ifndef NO_MORPHING
        assert(k[client_of(queue[n].id)].is_hearing && queue[n].heard == 0)
#endif
    :: else
    fi;
#endif
    if
    :: !is_held -> serve(0)
    :: else
    fi;
    said = DONE_SO
}

inline cond_cancel()
{
    flag = 0;
    if
    :: hold == id -> is_held = 1; flag = is_carried; said = OWNED
    :: else ->
        note_death();
        find(CONDITION, id);
        said = QUEUED_AT;
        if
        :: n < sleeping -> i = n; move(0)
        :: else ->
            find(MUTEX, id);
            if
            :: n < waiting -> flag = queue[n].is_carrier; queue[n].heard = 0
            :: else -> said = UNKNOWN
            fi
        fi;
        winner = 0;
        if
        :: said == QUEUED_AT && !is_held -> carried = flag; serve(id); flag = carried
        :: else
        fi;
        said = (winner == id -> OWNED : said)
    fi
}

/* I5: each client's attempt is in one place at most: queue, condition or hold. */
inline check_places()
{
    skip;
#ifdef ONE_PLACE
    i = 0;
    do
    :: i < CLIENTS ->
        flag = 0;
        j = 0;
        do
        :: j < PLACES ->
            if
            :: queue[j].id == id_of(i, k[i].attempt) -> flag++
            :: else
            fi;
            if
            :: sleeper[j].id == id_of(i, k[i].attempt) -> flag++
            :: else
            fi;
            j++
        :: else -> break
        od;
        flag = flag + (hold == id_of(i, k[i].attempt));
        assert(flag <= 1);
        i++
    :: else -> break
    od
#endif
}

inline server_of(c)
{
    d_step {
        len(command[c]) > 0 ->
        command[c]?op, id, other;
        flag = 0;
        if
        :: op == ACQUIRE -> acquire()
        :: op == RELEASE -> release()
        :: op == POLL -> poll()
        :: op == COND_WAIT -> cond_wait()
        :: op == COND_SIGNAL -> cond_signal()
        :: op == COND_CANCEL -> cond_cancel()
#ifdef KEEPS
        :: op == RENEW -> renew()
#endif
#ifdef ENQUEUE_AFTER_RELEASE
        :: op == ENQUEUE -> add(CONDITION, id, 0); said = ON_CONDITION
#endif
        fi;
        if
        :: k[c].is_up && !k[c].is_dead -> reply[c]!op, said, attempt_of(id), flag
        :: else
        fi;
        check_places();
        check();
        skip
    }
}

active proctype server()
{
end:
    do
    :: server_of(0)
    :: server_of(1)
    :: server_of(2)
#if CLIENTS > 3
    :: server_of(3)
#endif
#if RESTARTS > 0 /* comes back empty; the owner puts the lock back: lock.pml models the reclaim */
    :: d_step {
        restarts > 0 -> restarts--;
        debts = 0;
        do
        :: waiting > 0 -> remove(MUTEX, waiting - 1)
        :: sleeping > 0 -> remove(CONDITION, sleeping - 1)
        :: else -> break
        od;
        is_carried = 0;
        skip }
#endif
    od
}

/* ---- time ---------------------------------------------------------------------------------- */

#define is_waiting(c) (k[c].phase == WAITING || k[c].phase == QUEUED)
#ifdef KEEPS
#define is_renewal_due_of(c) (k[c].is_renewal_due)
#else
#define is_renewal_due_of(c) (false)
#endif
#define is_awake(c)                                                                                                    \
    (k[c].thread == ASKS || k[c].thread == INSIDE || k[c].thread == LEAVES || k[c].thread == SIGNALS ||                \
     k[c].thread == PASSES_ON || k[c].thread == STOPS_WAITING || (k[c].thread == SLEEPS && !is_waiting(c)) ||          \
     k[c].is_poll_due || (k[c].owed & ~k[c].posted) || len(reply[c]) > 0 || len(inbox[c]) > 0 || !k[c].is_up ||        \
     !k[c].is_hearing || is_renewal_due_of(c))
#define is_busy(c) (len(command[c]) > 0 || (!k[c].is_dead && is_awake(c)))

#if CLIENTS > 3
#define ALL_QUIET (!is_busy(0) && !is_busy(1) && !is_busy(2) && !is_busy(3))
#else
#define ALL_QUIET (!is_busy(0) && !is_busy(1) && !is_busy(2))
#endif

/* Ends a dead owner's lease; dead waiters are not heard from; live waiters must poll. */
inline pass_time()
{
    if
    :: hold != 0 && k[client_of(hold)].is_dead -> is_held = 0
    :: else
    fi;
    i = 0;
    do
    :: i < PLACES ->
        if
        :: queue[i].id != 0 && k[client_of(queue[i].id)].is_dead && queue[i].heard < GONE -> queue[i].heard++
        :: else
        fi;
        if
        :: sleeper[i].id != 0 && k[client_of(sleeper[i].id)].is_dead && sleeper[i].heard < GONE -> sleeper[i].heard++
        :: else
        fi;
        i++
    :: else -> break
    od;
#ifdef QUEUE_ENDS_WITH_ITS_WAITERS
    i = 0;
    do
    :: i < waiting && k[client_of(queue[i].id)].is_dead -> i++
    :: i < waiting && !k[client_of(queue[i].id)].is_dead -> i = PLACES
    :: else -> break
    od;
    do
    :: i == waiting && waiting > 0 -> remove(MUTEX, waiting - 1); i--
    :: else -> break
    od;
#endif
    i = 0;
    do
    :: i < CLIENTS ->
        k[i].is_poll_due = k[i].is_poll_due || (!k[i].is_dead && is_waiting(i) && !k[i].is_polling);
#if defined(KEEPS) && !defined(NO_RENEWALS)
        k[i].is_renewal_due = k[i].is_renewal_due || (!k[i].is_dead && k[i].has_kept);
#endif
        i++
    :: else -> break
    od
}

active proctype clock()
{
end:
    do
    :: d_step { ALL_QUIET -> pass_time(); skip }
    od
}

/* ---- the process --------------------------------------------------------------------------- */

/* process/calls/condition.c leave_condition(): after a request without an answer, only the server knows if a signal
 * came first. */
#define may_leave(c) (is_waiting(c) || k[c].was_asked)
#define may_send(c) (k[c].is_up && len(command[c]) + len(reply[c]) < PIPE)

inline end_kept(c)
{
    skip;
#ifdef KEEPS
    k[c].has_kept = 0;
    k[c].is_wanted = 0;
    k[c].is_renewal_due = 0
#endif
}

inline rename(c)
{
    assert(k[c].attempt < ATTEMPTS);
    k[c].attempt++;
    k[c].phase = ASKING;
    k[c].is_polling = 0;
    k[c].is_poll_due = 0;
    k[c].is_by_condition = 0;
    end_kept(c)
}

inline give_back(c)
{
    k[c].phase = OVER;
    end_kept(c);
    k[c].is_by_condition = 0;
    k[c].is_poll_due = 0;
    k[c].owed = k[c].owed | bit(k[c].attempt);
    if
    :: may_send(c) ->
        command[c]!RELEASE, id_of(c, k[c].attempt), 0;
        k[c].posted = k[c].posted | bit(k[c].attempt)
    :: else
    fi
}

/* The first unlock of a hold that keeps the lease sends the mark, by a renewal that the thread does not await. */
inline unlock(c)
{
#ifdef KEEPS
    if
    :: (KEEPS & bit(c)) && !k[c].is_wanted ->
        k[c].phase = KEPT;
        k[c].is_by_condition = 0;
        k[c].is_renewal_due = k[c].is_renewal_due || !k[c].has_kept;
        k[c].has_kept = 1
    :: else -> give_back(c)
    fi
#else
    give_back(c)
#endif
}

/* Begins the next lock of the thread: a kept lease is there already. */
inline lock_again(c)
{
    if
    :: !is_kept(c) -> rename(c)
    :: else
    fi;
    k[c].thread = ASKS
}

#ifdef KEEPS
/* An idle process gives the kept lease back at once; the next unlock of a thread inside does. */
inline hear_wanted(c)
{
    if
#ifndef WANTED_LEFT_LYING
    :: is_kept(c) -> reached(4); give_back(c)
#endif
#ifndef WANTED_FORGOTTEN_INSIDE
    :: k[c].phase == HELD -> reached(5); k[c].is_wanted = 1
#endif
    :: else
    fi
}
#endif

/* process/calls/condition.c: the store has ended the hold. */
inline close_hold(c) { k[c].leaving = 0; k[c].has_unanswered = 0 }

/* core/hold.c on_unknown(): begins another attempt.  The condition's waiter comes back, which is a spurious wake-up. */
inline on_unknown(c)
{
#ifdef WAITS_AGAIN_WHEN_UNKNOWN
    if
    :: k[c].phase == WAITING -> add(CONDITION, id_of(c, k[c].attempt), 0)
    :: else -> rename(c)
    fi
#else
    rename(c)
#endif
}

inline take_reply(c)
{
    reply[c]?op, said, id, flag;
    if
    :: op == RELEASE -> k[c].owed = k[c].owed & ~bit(id); k[c].posted = k[c].posted & ~bit(id)
    :: op == POLL && id == k[c].attempt ->
        k[c].is_polling = 0;
        if
        :: said == OWNED && (k[c].phase == ASKING || is_waiting(c)) -> k[c].phase = HELD
        :: said == QUEUED_AT && is_waiting(c) -> k[c].phase = QUEUED
        :: said == UNKNOWN && is_waiting(c) && k[c].is_poll_newest -> on_unknown(c)
        :: else
        fi
#ifdef KEEPS
#ifndef MARK_WITHOUT_ANSWER
    :: op == RENEW && id == k[c].attempt && said == OWNED && flag -> hear_wanted(c)
#endif
#endif
    :: op == COND_SIGNAL -> k[c].thread = (k[c].thread == PASSED -> INSIDE : k[c].thread)
    :: (op == ACQUIRE || op == COND_WAIT || op == COND_CANCEL || op == ENQUEUE) && id == k[c].attempt ->
        if
        :: said == OWNED && (k[c].phase == ASKING || is_waiting(c)) -> k[c].phase = HELD
        :: said == QUEUED_AT && (k[c].phase == ASKING || is_waiting(c)) -> k[c].phase = QUEUED
        :: said == ON_CONDITION && k[c].phase == ASKING -> k[c].phase = WAITING
        :: said == UNKNOWN && is_waiting(c) -> on_unknown(c)
        :: said == NOT_OWNER -> rename(c) /* to a repeated call: the first call was executed; comes back */
        :: else
        fi;
        if
        :: op == COND_CANCEL -> k[c].is_signalled = IS_SIGNALLED(flag); k[c].is_by_condition = 0; k[c].was_asked = 0
        :: op == COND_WAIT -> close_hold(c)
        :: else
        fi;
        k[c].thread = (k[c].phase == ASKING -> ASKS : SLEEPS)
#ifdef ENQUEUE_AFTER_RELEASE
        ;
        if
        :: op == COND_WAIT && said == ON_CONDITION -> k[c].thread = LEFT; command[c]!ENQUEUE, id_of(c, id), 0
        :: else
        fi
#endif
    :: else
    fi
}

inline take_message(c)
{
    inbox[c]?kind, id;
    if
    :: id == k[c].attempt && kind == GRANTED && (k[c].phase == ASKING || is_waiting(c)) -> k[c].phase = HELD
    :: id == k[c].attempt && kind == SIGNALLED && (k[c].phase == ASKING || is_waiting(c)) -> k[c].phase = SIGNALLED_IS
#ifdef KEEPS
    :: id == k[c].attempt && kind == WANTED -> hear_wanted(c)
#endif
    :: else
    fi
}

/* Breaks the connection: a thread that awaits an answer gets no answer and asks again. */
inline break_connection(c)
{
    k[c].is_up = 0;
    k[c].posted = 0;
    do
    :: len(reply[c]) > 0 -> reply[c]?_, _, _, _
    :: else -> break
    od;
    k[c].is_polling = 0;
    k[c].is_poll_due = is_waiting(c);
    if
    :: k[c].thread == AWAITS -> k[c].thread = (k[c].phase == ASKING -> ASKS : SLEEPS)
    :: k[c].thread == PASSED -> k[c].thread = PASSES_ON
    :: k[c].thread == STOPPED && k[c].was_waiting -> k[c].was_asked = 1; k[c].thread = STOPS_WAITING
    :: k[c].thread == STOPPED && !k[c].was_waiting ->
        k[c].is_signalled = 1;
        k[c].was_asked = 0;
        k[c].thread = (k[c].phase == ASKING -> ASKS : SLEEPS)
    :: k[c].thread == LEFT ->
        k[c].has_unanswered = 1;
        if /* is_known_to_wait() */
        :: k[c].phase == ASKING -> k[c].thread = LEAVES
        :: else -> close_hold(c); k[c].thread = SLEEPS
        fi
    :: else
    fi
}

inline reconnect(c)
{
    do
    :: len(command[c]) > 0 -> command[c]?_, _, _
    :: else -> break
    od;
    k[c].is_up = 1;
#if defined(KEEPS) && !defined(MARK_SENT_ONCE)
    k[c].is_renewal_due = k[c].has_kept;
#endif
    k[c].is_poll_due = k[c].is_poll_due || is_waiting(c)
}

inline end_thread(c)
{
    k[c].thread = ENDED;
    k[c].is_given_up = 0
}

/* After an unlock of a consumer: the next round, if any. */
inline end_round(c)
{
#ifdef KEEPS
    k[c].rounds--;
    if
    :: k[c].rounds > 0 && !k[c].is_cancelled -> k[c].is_given_up = 0; lock_again(c)
    :: else -> end_thread(c)
    fi
#else
    end_thread(c)
#endif
}

proctype client(byte c)
{
end:
    do
    /* process/calls/acquire.c */
    :: d_step { !k[c].is_dead && k[c].thread == ASKS && k[c].phase == ASKING && may_send(c) ->
        command[c]!ACQUIRE, id_of(c, k[c].attempt), k[c].owed;
        k[c].is_poll_newest = 0;
        k[c].thread = AWAITS }
#ifdef KEEPS
    :: d_step { !k[c].is_dead && k[c].thread == ASKS && is_kept(c) ->
        k[c].phase = HELD;
        reached(1);
#ifdef WITH_MUTEX
        assert(hold == id_of(c, k[c].attempt) && is_held);
#endif
        k[c].thread = INSIDE }
    :: d_step { !k[c].is_dead && k[c].thread == ASKS && k[c].phase == OVER -> rename(c) /* released meanwhile */ }
    :: d_step { !k[c].is_dead && k[c].thread == ASKS && k[c].phase != ASKING && k[c].phase != OVER && !is_kept(c) -> k[c].thread = SLEEPS }
    :: d_step { !k[c].is_dead && k[c].is_renewal_due && may_send(c) ->
        k[c].is_renewal_due = 0;
        command[c]!RENEW, id_of(c, k[c].attempt), 0 }
#else
    :: d_step { !k[c].is_dead && k[c].thread == ASKS && k[c].phase != ASKING -> k[c].thread = SLEEPS }
#endif
    :: d_step { !k[c].is_dead && k[c].thread == SLEEPS && k[c].phase == ASKING -> k[c].thread = ASKS }
    :: d_step { !k[c].is_dead && k[c].thread == SLEEPS && k[c].phase == HELD ->
#ifdef WITH_MUTEX
        assert(hold == id_of(c, k[c].attempt) && is_held);
#endif
        k[c].thread = (k[c].is_cancelled && k[c].is_signalled && HAS_PASSING_ON -> PASSES_ON : INSIDE) }
    /* a consumer */
    :: d_step { !k[c].is_dead && c != PRODUCER && k[c].thread == INSIDE && (items > 0 || k[c].is_given_up) && !k[c].is_cancelled ->
        /* a consumer that got ETIMEDOUT does not check again */
        items = (items > 0 && !(k[c].is_given_up && !k[c].is_signalled) -> items - 1 : items);
        unlock(c);
        end_round(c) }
    /* the cleanup handlers of a cancelled thread unlock */
    :: d_step { !k[c].is_dead && c != PRODUCER && k[c].thread == INSIDE && k[c].is_cancelled ->
        unlock(c);
        end_thread(c) }
    :: d_step { !k[c].is_dead && c != PRODUCER && k[c].thread == INSIDE && items == 0 && !k[c].is_given_up ->
        k[c].leaving = k[c].attempt;
#ifdef KEEPS
        if
        :: k[c].has_kept -> reached(2)
        :: else
        fi;
#endif
        rename(c);
        k[c].is_by_condition = 1;
        k[c].thread = LEAVES }
    :: d_step { !k[c].is_dead && k[c].thread == LEAVES && k[c].phase == ASKING && may_send(c) ->
        command[c]!COND_WAIT, id_of(c, k[c].attempt), id_of(c, k[c].leaving);
        k[c].is_poll_newest = 0;
        k[c].thread = LEFT }
    :: d_step { !k[c].is_dead && k[c].thread == LEAVES && k[c].phase != ASKING -> close_hold(c); k[c].thread = SLEEPS }
#ifdef STAYS /* a control: no answer in time, and the thread keeps the hold, as process/calls/condition.c once did */
    :: d_step { !k[c].is_dead && k[c].thread == LEAVES && k[c].has_unanswered && k[c].phase == ASKING ->
        k[c].owed = k[c].owed | bit(k[c].attempt);
        k[c].attempt = k[c].leaving;
        k[c].phase = HELD;
        k[c].leaving = 0;
        check();
        skip }
#endif
    /* the producer: with the mutex, or without */
    :: d_step { !k[c].is_dead && c == PRODUCER && k[c].thread == INSIDE ->
        items = items + PORTION;
        made = made + PORTION;
#ifdef SIGNAL_UNLOCKED
        unlock(c);
#endif
        k[c].thread = SIGNALS }
    :: d_step { !k[c].is_dead && c == PRODUCER && k[c].thread == SIGNALS && may_send(c) ->
        command[c]!COND_SIGNAL, id_of(c, k[c].attempt), MOST;
#ifndef SIGNAL_UNLOCKED
#ifdef KEEPS
        unlock(c);
#else
        k[c].phase = OVER; /* the unlock follows the signal, posted below */
        k[c].owed = k[c].owed | bit(k[c].attempt);
#endif
#endif
        k[c].thread = ENDED;
        if
        :: made < ITEMS -> lock_again(c)
        :: else
        fi; skip }
#if TIMEOUTS > 0
    :: d_step { !k[c].is_dead && c != PRODUCER && k[c].thread == SLEEPS && is_waiting(c) && k[c].is_by_condition && timeouts > 0 ->
        timeouts--;
        k[c].is_given_up = 1;
        k[c].thread = STOPS_WAITING }
#endif
#if CANCELS > 0
    :: d_step { !k[c].is_dead && c != PRODUCER && k[c].thread == SLEEPS && is_waiting(c) && k[c].is_by_condition && cancels > 0 ->
        cancels--;
        k[c].is_given_up = 1;
        k[c].is_cancelled = 1;
        k[c].thread = STOPS_WAITING }
#endif
    /* process/calls/condition.c leave_condition() */
    :: d_step { !k[c].is_dead && k[c].thread == STOPS_WAITING && !(k[c].is_by_condition && may_leave(c)) ->
        k[c].is_signalled = IS_SIGNALLED(k[c].is_by_condition);
        k[c].was_asked = 0;
        k[c].thread = SLEEPS }
    :: d_step { !k[c].is_dead && k[c].thread == STOPS_WAITING && k[c].is_by_condition && may_leave(c) && may_send(c) ->
        command[c]!COND_CANCEL, id_of(c, k[c].attempt), 0;
        k[c].is_poll_newest = 0;
        k[c].was_waiting = is_waiting(c);
        k[c].thread = STOPPED }
    :: d_step { !k[c].is_dead && k[c].thread == PASSES_ON && may_send(c) ->
        command[c]!COND_SIGNAL, id_of(c, k[c].attempt), 1;
        k[c].thread = PASSED }
    /* process/keep/pump.c */
#ifdef RENEWAL_TAKES_THE_SIGNAL /* before the thread is back and asks if a signal brought the hold */
    :: d_step { !k[c].is_dead && k[c].phase == HELD && k[c].is_up && len(command[c]) == 0 && is_carried && is_held && hold == id_of(c, k[c].attempt) -> is_carried = 0 }
#endif
    :: d_step { !k[c].is_dead && is_waiting(c) && !k[c].is_polling && may_send(c) && (k[c].is_poll_due || polls > 0) ->
        polls = (k[c].is_poll_due -> polls : polls - 1);
        k[c].is_poll_due = 0;
        k[c].is_polling = 1;
        k[c].is_poll_newest = 1;
        command[c]!POLL, id_of(c, k[c].attempt), 0 }
    :: d_step { !k[c].is_dead && k[c].is_poll_due && (!is_waiting(c) || k[c].is_polling) -> k[c].is_poll_due = 0 }
    :: d_step { !k[c].is_dead && (k[c].owed & ~k[c].posted) && may_send(c) ->
        j = 1;
        do
        :: (k[c].owed & ~k[c].posted & bit(j)) -> break
        :: else -> j++
        od;
        k[c].posted = k[c].posted | bit(j);
        command[c]!RELEASE, id_of(c, j), 0 }
    /* arrivals */
    :: d_step { !k[c].is_dead && len(reply[c]) > 0 -> take_reply(c); check(); skip }
    :: d_step { !k[c].is_dead && len(inbox[c]) > 0 -> take_message(c); check(); skip }
    :: d_step { !k[c].is_dead && !k[c].is_up -> reconnect(c); skip }
    :: d_step { !k[c].is_dead && !k[c].is_hearing -> k[c].is_hearing = 1; k[c].is_poll_due = is_waiting(c) }
    od
}

/* ---- faults -------------------------------------------------------------------------------- */

/* Kills a client with a hold not confirmed yet: after the confirmation a received signal is used up, and may die. */
inline kill(c)
{
    k[c].is_dead = 1;
    do
    :: len(inbox[c]) > 0 -> inbox[c]?_, _
    :: len(reply[c]) > 0 -> reply[c]?_, _, _, _
    :: else -> break
    od;
    end_kept(c);
    k[c].is_poll_due = 0
}

inline faults_of(c)
{
    if
    :: d_step { kills > 0 && !k[c].is_dead && (k[c].thread == SLEEPS || k[c].thread == AWAITS || k[c].thread == STOPPED || k[c].thread == LEFT || is_kept(c)) -> kills--; kill(c); skip }
    :: d_step { k[c].is_dead && k[c].is_hearing -> k[c].is_hearing = 0 }
    :: d_step { breaks > 0 && !k[c].is_dead && k[c].is_up -> breaks--; break_connection(c); skip }
    :: d_step { losses > 0 && !k[c].is_dead && !k[c].is_misheard -> losses--; k[c].is_misheard = 1 }
    :: d_step { deafs > 0 && !k[c].is_dead && k[c].is_hearing ->
        deafs--;
        k[c].is_hearing = 0;
        do
        :: len(inbox[c]) > 0 -> inbox[c]?_, _
        :: else -> break
        od; skip }
    fi
}

inline age(which)
{
    if
    :: d_step { pauses > 0 && list[which].at[0].id != 0 && list[which].at[0].heard < GONE -> pauses--; list[which].at[0].heard++ }
    :: d_step { pauses > 0 && list[which].at[1].id != 0 && list[which].at[1].heard < GONE -> pauses--; list[which].at[1].heard++ }
    fi
}

proctype faults()
{
end:
    do
    :: faults_of(0)
    :: faults_of(1)
    :: age(MUTEX)
    :: age(CONDITION)
    od
}

init
{
    atomic {
        run client(0);
        run client(1);
        run client(2);
#if CLIENTS > 3
        run client(3);
#endif
        run faults();
    }
}

/* No live consumer waits forever while there is an item.  With an item for each consumer, all get through. */
#define is_through(c) (k[c].thread == ENDED || k[c].is_dead)
#if CONSUMERS > 2
#define ALL_THROUGH (is_through(0) && is_through(1) && is_through(2))
#else
#define ALL_THROUGH (is_through(0) && is_through(1))
#endif
#ifdef KEEPS /* and nobody waits forever for a mutex that nobody uses */
#define is_out(c) (k[c].is_dead || k[c].thread == ENDED || k[c].phase == WAITING)
#define NOBODY_QUEUED (is_out(0) && is_out(1) && is_out(2))
ltl nobody_sleeps_beside_an_item { <>[] (k[PRODUCER].thread == ENDED && (items == 0 || ALL_THROUGH) && NOBODY_QUEUED) }
#else
ltl nobody_sleeps_beside_an_item { <>[] (k[PRODUCER].thread == ENDED && (items == 0 || ALL_THROUGH)) }
#endif
