/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Death of an owner: the next owner learns of it, and may make the mutex consistent; otherwise the mutex becomes not
 * recoverable.  One mutex; robust clients, and with PLAIN the last client is not robust.  An owner may unlock, call
 * dmutex_consistent() or not, be killed, or find the hold lost; unlocks are awaited, as for robust mutexes, but not
 * with POSTED.
 *
 * Leases end as in lock.pml, but without a clock: the lease of a dead owner at any time, the lease of a live owner
 * after the owner has found the hold lost or has begun another attempt.  doc/design/models.md.
 */
#ifndef CLIENTS
#define CLIENTS 3
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifndef KILLS
#define KILLS 1
#endif
#ifndef LOSSES
#define LOSSES 0 /* a live owner's lease ends */
#endif
#ifndef BREAKS
#define BREAKS 0
#endif
#ifndef DROPS
#define DROPS 0 /* destroyed and used again: clean */
#endif
#define PLACES (CLIENTS + 2)
#define ATTEMPTS 7

#ifndef ONLY
#define TOLD_ONCE
#define TRUE_DEATH
#define STICKS
#endif

/* clang-format off */
mtype = { ACQUIRE, RELEASE, CONSISTENT, POLL, DROP };
mtype = { OWNED, QUEUED_AT, NOT_RECOVERABLE, UNKNOWN, RELEASED, MENDED, NOT_OWNER };
mtype = { ASKS, AWAITS, SLEEPS, INSIDE, MENDS, UNLOCKS, ENDED, REFUSED };
/* clang-format on */

#define id_of(c, a) (((c) + 1) * 8 + (a))
#define client_of(id) ((id) / 8 - 1)
#define attempt_of(id) ((id) % 8)
#define bit(a) (1 << (a))
#ifdef PLAIN
#define is_robust(c) ((c) != CLIENTS - 1)
#else
#define is_robust(c) true
#endif

byte hold;
bool is_held;
byte health; /* 0 clean, 1 an owner died, 2 not recoverable */
byte queue[PLACES];
byte waiting;

typedef Client {
    mtype thread = ASKS;
    byte attempt = 1;
    byte rounds;
    byte how;          /* how the release ends the hold: 0 unlocked, 1 died, 2 not recoverable */
    bool is_told_dead; /* EOWNERDEAD, and not made consistent */
    bool is_polling;
    bool is_lost;      /* the client knows that the hold is over */
    bool is_dead;
};
Client k[CLIENTS];
chan command[CLIENTS] = [2] of { mtype, byte, byte };
chan reply[CLIENTS] = [2] of { mtype, byte, bool };
chan inbox[CLIENTS] = [2] of { byte, bool };
byte kills = KILLS, losses = LOSSES, breaks = BREAKS, drops = DROPS;

/* For assertions, unknown to server and clients: deaths that no robust owner knows yet, or that are not repaired. */
byte deaths;      /* holds that ended without an unlock executed by the server */
bool is_unmended; /* a death is neither repaired nor cleared by an owner that is not robust */
bool is_lost_for_ever;

hidden byte i, j, id, how, winner;
hidden byte dead, flag;
hidden mtype op, said;

/* _grant.lua, and _base.lua inherit() */
inline own(who)
{
#ifdef STICKS
    assert(!is_lost_for_ever);
#endif
    hold = who;
    is_held = 1;
    dead = (is_robust(client_of(who)) -> health : 0);
#ifdef TOLD_ONCE /* I9: told if and only if there is something to repair */
    assert(!is_robust(client_of(who)) || (dead == 1) == is_unmended);
#endif
    if
    :: is_robust(client_of(who))
    :: else -> health = 0; is_unmended = 0
    fi
}

inline forget(who)
{
    i = 0;
    do
    :: i < waiting && queue[i] != who -> i++
    :: else -> break
    od;
    if
    :: i < waiting ->
        waiting--;
        do
        :: i < waiting -> queue[i] = queue[i + 1]; i++
        :: else -> break
        od;
        queue[i] = 0
    :: else
    fi
}

/* Grants to the first live waiter; dead waiters leave the queue, live waiters hear the message. */
inline serve(me)
{
    winner = 0;
    do
    :: waiting > 0 && winner == 0 ->
        winner = queue[0];
        forget(winner);
        if
        :: k[client_of(winner)].is_dead -> winner = 0
        :: else ->
            own(winner);
            if
            :: winner != me -> assert(len(inbox[client_of(winner)]) < 2); inbox[client_of(winner)]!attempt_of(winner), dead
            :: else
            fi
        fi
    :: else -> break
    od
}

inline give_up(its_how)
{
    is_held = 0;
#ifndef HOLD_IS_LEFT
    hold = 0;
#endif
    if
    :: its_how != 0 -> health = its_how
    :: else
    fi
}

/* There is no lock but there is hold: the owner died.  deaths counts such holds. */
inline note_death()
{
    if
    :: hold != 0 && !is_held ->
#ifdef TRUE_DEATH
        assert(deaths > 0);
        /* not an owner that has unlocked and got the answer */
        assert(k[client_of(hold)].is_dead || attempt_of(hold) == k[client_of(hold)].attempt);
#endif
        deaths = (deaths > 0 -> deaths - 1 : 0);
        is_unmended = 1;
#ifdef DEATH_IS_NOT_NOTED
        hold = 0
#else
        hold = 0;
        health = 1
#endif
    :: else
    fi
}

inline tell_unrecoverable()
{
    i = 0;
    do
    :: i < waiting ->
        k[client_of(queue[i])].is_polling = 0; /* "ask": the waiter polls at once, or later unasked */
        i++
    :: else -> break
    od
}

inline acquire()
{
    dead = 0;
    if
    :: hold == id && is_held -> said = OWNED; dead = (is_robust(client_of(id)) -> health : 0)
    :: hold == id && !is_held -> is_held = 1; said = OWNED; dead = (is_robust(client_of(id)) -> health : 0); deaths = (deaths > 0 -> deaths - 1 : 0)
    :: else ->
        note_death();
        if
        :: health == 2 -> forget(id); tell_unrecoverable(); said = NOT_RECOVERABLE
        :: else ->
            forget(id);
            queue[waiting] = id;
            waiting++;
            winner = 0;
            if
            :: !is_held -> serve(id)
            :: else
            fi;
            said = (winner == id -> OWNED : QUEUED_AT)
        fi
    fi
}

inline poll()
{
    dead = 0;
    if
    :: hold == id ->
        deaths = (is_held || deaths == 0 -> deaths : deaths - 1);
        is_held = 1;
        said = OWNED;
        dead = (is_robust(client_of(id)) -> health : 0)
    :: else ->
        note_death();
        if
        :: health == 2 -> forget(id); tell_unrecoverable(); said = NOT_RECOVERABLE
        :: else ->
            i = 0;
            do
            :: i < waiting && queue[i] != id -> i++
            :: else -> break
            od;
            said = (i < waiting -> QUEUED_AT : UNKNOWN);
            winner = 0;
            if
            :: !is_held -> j = id; serve(j)
            :: else
            fi;
            said = (winner == id -> OWNED : said)
        fi
    fi
}

inline release()
{
    said = RELEASED;
    if
    :: hold == id ->
        if
        :: how == 2 -> is_lost_for_ever = 1
        :: how == 1 -> is_unmended = 1
        :: else
        fi;
        give_up(how);
        if
#ifdef SERVES_WHAT_NOBODY_CAN_MEND
        :: false
#else
        :: health == 2 -> tell_unrecoverable()
#endif
        :: else -> serve(0)
        fi
    :: else -> forget(id)
    fi
}

inline consistent()
{
#ifdef MENDS_ANYBODYS
    if
    :: true -> health = 0; said = MENDED; is_unmended = (hold == id -> 0 : is_unmended)
#else
    if
    :: hold == id -> health = 0; is_unmended = 0; said = MENDED
#endif
#ifndef MENDS_ANYBODYS
    :: else -> said = NOT_OWNER
#endif
    fi
}

/* dmutex_destroy() of a name that is not recoverable. */
inline drop()
{
    said = RELEASED;
    if
    :: !is_held && waiting == 0 && health == 2 -> health = 0; is_lost_for_ever = 0; is_unmended = 0
    :: else
    fi
}

inline server_of(c)
{
    d_step {
        len(command[c]) > 0 ->
        command[c]?op, id, how;
        dead = 0;
        if
        :: op == ACQUIRE -> acquire()
        :: op == POLL -> poll()
        :: op == RELEASE -> release()
        :: op == CONSISTENT -> consistent()
        :: op == DROP -> drop()
        fi;
        if
        :: !k[c].is_dead -> reply[c]!said, attempt_of(id), dead == 1
        :: else
        fi;
        skip
    }
}

/* Whether a lease may end: the owner is dead, has begun another attempt, or has found the hold lost. */
#define may_end (hold != 0 && is_held && (k[client_of(hold)].is_dead || attempt_of(hold) != k[client_of(hold)].attempt || k[client_of(hold)].is_lost))

active proctype server()
{
end:
    do
    :: server_of(0)
    :: server_of(1)
#if CLIENTS > 2
    :: server_of(2)
#endif
    od
}

active proctype leases()
{
end:
    do
    :: d_step { may_end -> is_held = 0; deaths++ }
    od
}

inline next_attempt(c)
{
    k[c].attempt++;
    k[c].how = 0;
    k[c].is_told_dead = 0;
    k[c].is_lost = 0;
    k[c].is_polling = 0
}

inline end_round(c)
{
    k[c].rounds++;
    next_attempt(c);
    k[c].thread = (k[c].rounds == ROUNDS -> ENDED : ASKS)
}

inline take_reply(c)
{
    reply[c]?said, id, flag;
    if
    :: id != k[c].attempt
    :: else ->
        if
        :: said == OWNED && (k[c].thread == AWAITS || k[c].thread == SLEEPS) -> k[c].thread = INSIDE; k[c].is_told_dead = flag; k[c].is_polling = 0
        :: said == QUEUED_AT && k[c].thread == AWAITS -> k[c].thread = SLEEPS
        :: said == QUEUED_AT && k[c].thread == SLEEPS -> k[c].is_polling = 0
        :: said == UNKNOWN && k[c].thread == SLEEPS -> next_attempt(c); k[c].thread = ASKS
        :: said == NOT_RECOVERABLE && (k[c].thread == AWAITS || k[c].thread == SLEEPS) ->
#ifdef STICKS
            assert(is_lost_for_ever || DROPS > 0);
#endif
            k[c].thread = REFUSED
        :: said == MENDED && k[c].thread == MENDS -> k[c].is_told_dead = 0; k[c].thread = INSIDE
        :: said == NOT_OWNER && k[c].thread == MENDS -> k[c].thread = INSIDE; k[c].is_lost = 1
        :: said == RELEASED && k[c].thread == UNLOCKS -> end_round(c)
        :: else
        fi
    fi
}

#define may_send(c) (len(command[c]) + len(reply[c]) < 2)

proctype client(byte c)
{
end:
    do
    :: d_step { !k[c].is_dead && k[c].thread == ASKS && may_send(c) -> command[c]!ACQUIRE, id_of(c, k[c].attempt), 0; k[c].thread = AWAITS }
    :: d_step { !k[c].is_dead && k[c].thread == SLEEPS && !k[c].is_polling && may_send(c) ->
        command[c]!POLL, id_of(c, k[c].attempt), 0;
        k[c].is_polling = 1 }
    /* repairs, or unlocks: without repair, the mutex becomes not recoverable */
    :: d_step { !k[c].is_dead && k[c].thread == INSIDE && k[c].is_told_dead && !k[c].is_lost && may_send(c) ->
        command[c]!CONSISTENT, id_of(c, k[c].attempt), 0;
        k[c].thread = MENDS }
    :: d_step { !k[c].is_dead && k[c].thread == INSIDE && may_send(c) ->
        k[c].how = (k[c].is_lost -> 1 : (k[c].is_told_dead -> 2 : 0));
        command[c]!RELEASE, id_of(c, k[c].attempt), k[c].how;
        k[c].thread = UNLOCKS;
#ifdef POSTED
        end_round(c)
#endif
        }
    /* the certainty of the hold ends */
    :: d_step { losses > 0 && !k[c].is_dead && k[c].thread == INSIDE && !k[c].is_lost -> losses--; k[c].is_lost = 1 }
    :: d_step { !k[c].is_dead && k[c].thread == REFUSED && drops > 0 && may_send(c) ->
        drops--;
        command[c]!DROP, id_of(c, k[c].attempt), 0;
        next_attempt(c);
        k[c].thread = ASKS }
    :: d_step { !k[c].is_dead && len(reply[c]) > 0 -> take_reply(c); skip }
    :: d_step { !k[c].is_dead && len(inbox[c]) > 0 ->
        inbox[c]?id, flag;
        if
        :: id == k[c].attempt && (k[c].thread == AWAITS || k[c].thread == SLEEPS) -> k[c].thread = INSIDE; k[c].is_told_dead = flag
        :: else
        fi;
        skip }
    /* killed: commands sent before are executed or not; broken: the same, and commands without answer are sent again */
    :: d_step { kills > 0 && !k[c].is_dead && k[c].thread != ENDED && k[c].thread != REFUSED ->
        kills--;
        k[c].is_dead = 1;
        do
        :: len(reply[c]) > 0 -> reply[c]?_, _, _
        :: len(inbox[c]) > 0 -> inbox[c]?_, _
        :: else -> break
        od;
        skip }
    :: d_step { k[c].is_dead && len(command[c]) > 0 -> command[c]?_, _, _ }
    :: d_step { breaks > 0 && !k[c].is_dead && (k[c].thread == AWAITS || k[c].thread == MENDS || k[c].thread == UNLOCKS || k[c].is_polling) ->
        breaks--;
        do
        :: len(reply[c]) > 0 -> reply[c]?_, _, _
        :: len(command[c]) > 0 -> command[c]?_, _, _
        :: else -> break
        od;
        k[c].is_polling = 0;
        k[c].thread = (k[c].thread == AWAITS -> ASKS : (k[c].thread == MENDS -> INSIDE : k[c].thread));
        if
        :: k[c].thread == UNLOCKS -> command[c]!RELEASE, id_of(c, k[c].attempt), k[c].how
        :: else
        fi;
        skip }
    od
}

init
{
    atomic {
        run client(0);
        run client(1);
#if CLIENTS > 2
        run client(2);
#endif
    }
}

#define is_through(c) (k[c].thread == ENDED || k[c].thread == REFUSED || k[c].is_dead)
#if CLIENTS > 2
#define ALL_THROUGH (is_through(0) && is_through(1) && is_through(2))
#else
#define ALL_THROUGH (is_through(0) && is_through(1))
#endif
/* All live clients get the mutex, or get "not recoverable"; leases do end, and polls continue. */
ltl all_get_through { <> ALL_THROUGH }
