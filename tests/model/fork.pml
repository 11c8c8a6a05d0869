/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fork(): a parent owns, waits, or is just sending, and the child continues with a copy of all data of the
 * parent at the fork: process/life/runtime.c's handlers of pthread_atfork().
 *
 * The parent has two threads: the application's thread forks; the loop thread sends commands, each in two writes,
 * and changes tables in two steps.  The child has the application's thread only.  A rival waits for the lock.
 */
#ifndef ONLY
#define EXCLUSION
#define WHOLE_COMMANDS
#define WHOLE_TABLES
#define PARENT_UNDISTURBED
#define DEAD_ARE_DEAF
#endif
#ifndef LOCKS
#define LOCKS 2 /* of each process, at most */
#endif

/* clang-format off */
mtype = { ACQUIRE, RELEASE, RENEW };
mtype = { NOTHING, ASKS, HELD };
/* clang-format on */

#define PARENT 0
#define CHILD 1
#define RIVAL 2
#define PROCESSES 3

/* ---- the server ---------------------------------------------------------------------------- */

byte hold;                                   /* uuid * 8 + attempt; 0: none */
byte queue;                                  /* a single waiter, of any process; 0: none */
chan wire[PROCESSES] = [4] of { mtype, byte, bit }; /* command, id, second half */
byte half[PROCESSES];                        /* the id of a half-read command; 0: none */
byte readers[PROCESSES];                     /* processes in which an inbox is open: the kernel's count */

/* ---- a process ----------------------------------------------------------------------------- */

typedef Process {
    byte uuid;
    byte wire;    /* the connection for writing */
    mtype phase = NOTHING;
    byte attempt;
    bool is_born, is_dead;
    bool is_table_whole = 1;
    bool is_in_handler;
    byte locks;
};
Process p[PROCESSES];
byte uuids = 3; /* drawn so far */
bool is_write_locked, is_state_locked; /* the parent's CONN and STATE */
bool is_cut[PROCESSES];                /* the connection was shut down */
bool is_forked;

hidden mtype op;
hidden byte id, i, j;
hidden byte second;

#define id_of(c) (p[c].uuid * 8 + p[c].attempt)
#define believes(c) (p[c].phase == HELD && p[c].is_born && !p[c].is_dead)

inline check()
{
#ifdef EXCLUSION
    assert(!(believes(PARENT) && believes(CHILD)));
    assert(!(believes(PARENT) && believes(RIVAL)));
    assert(!(believes(CHILD) && believes(RIVAL)));
#endif
#ifdef PARENT_UNDISTURBED
    assert(!is_cut[PARENT]);
    assert(!believes(PARENT) || hold == id_of(PARENT));
#endif
    skip
}

/* Grants, and informs the new owner at once: lock.pml models messages, and lost messages, which cost a lease. */
inline grant(who)
{
    i = 0;
    do
    :: i < PROCESSES && !(p[i].uuid == who / 8 && p[i].is_born) -> i++
    :: else -> break
    od;
#ifdef DEAD_ARE_DEAF /* no grant is sent to a dead process: such a grant costs a lease */
    assert(!(i < PROCESSES && p[i].is_dead && readers[i] > 0 && !p[CHILD].is_in_handler));
#endif
    if
    :: i < PROCESSES && readers[i] > 0 ->
        hold = who;
        queue = 0;
        p[i].phase = (p[i].phase == ASKS && !p[i].is_dead -> HELD : p[i].phase)
    :: else -> queue = 0
    fi
}

inline execute(w)
{
    wire[w]?op, id, second;
    if
    :: !second ->
#ifdef WHOLE_COMMANDS
        assert(half[w] == 0);
#endif
        half[w] = id
    :: else ->
#ifdef WHOLE_COMMANDS
        assert(half[w] == id);
#endif
        half[w] = 0;
        if
        :: op == ACQUIRE && (hold == 0 || hold == id) ->
            hold = id;
            j = 0;
            do
            :: j < PROCESSES -> p[j].phase = (p[j].wire == w && id_of(j) == id && p[j].phase == ASKS -> HELD : p[j].phase); j++
            :: else -> break
            od
        :: op == ACQUIRE && hold != 0 && hold != id -> queue = (queue == 0 -> id : queue)
        :: op == RELEASE && hold == id ->
            hold = 0;
            if
            :: queue != 0 -> grant(queue)
            :: else
            fi
        :: else
        fi
    fi;
    check()
}

active proctype server()
{
end:
    do
    :: d_step { len(wire[PARENT]) > 0 -> execute(PARENT); skip }
    :: d_step { len(wire[CHILD]) > 0 -> execute(CHILD); skip }
    :: d_step { len(wire[RIVAL]) > 0 -> execute(RIVAL); skip }
    /* the lease of a dead owner ends */
    :: d_step { hold != 0 && p[PARENT].is_dead && hold / 8 == p[PARENT].uuid && !(p[CHILD].is_born && believes(CHILD)) ->
        hold = 0;
        if
        :: queue != 0 -> grant(queue)
        :: else
        fi;
        skip }
    od
}

#define may_write(c) (len(wire[p[c].wire]) < 3)

/* Sends a command of the application's thread: in one step, because no fork of the thread itself interrupts its
 * writes. */
inline send(c, what)
{
    wire[p[c].wire]!what, id_of(c), 0;
    wire[p[c].wire]!what, id_of(c), 1
}

#define may_use(c) (p[c].is_born && !p[c].is_dead && !p[c].is_in_handler && (c != PARENT || !is_write_locked))

proctype process(byte c)
{
end:
    do
    :: d_step { may_use(c) && p[c].phase == NOTHING && p[c].locks < LOCKS && may_write(c) ->
        p[c].locks++;
        p[c].attempt++;
#ifdef WHOLE_TABLES
        assert(p[c].is_table_whole || c == PARENT);
#endif
        p[c].phase = ASKS;
        send(c, ACQUIRE) }
    :: d_step { may_use(c) && p[c].phase == HELD && may_write(c) ->
        send(c, RELEASE);
        p[c].phase = NOTHING }
    od
}

/* The parent's loop thread: renews, and changes tables. */
active proctype loop_thread()
{
end:
    do
    :: d_step { !p[PARENT].is_dead && p[PARENT].phase == HELD && !is_write_locked && may_write(PARENT) ->
        is_write_locked = 1;
        wire[PARENT]!RENEW, id_of(PARENT), 0 };
        d_step { len(wire[PARENT]) < 4; wire[PARENT]!RENEW, id_of(PARENT), 1; is_write_locked = 0 }
    :: d_step { !p[PARENT].is_dead && !is_state_locked && !is_forked -> is_state_locked = 1; p[PARENT].is_table_whole = 0 };
        d_step { p[PARENT].is_table_whole = 1; is_state_locked = 0 }
    od
}

#ifdef NO_PREPARE
#define is_prepared true
#else
#define is_prepared (!is_write_locked && !is_state_locked)
#endif

proctype forks()
{
    d_step { !p[PARENT].is_dead && is_prepared ->
        is_forked = 1;
        /* a copy of all data */
        p[CHILD].is_born = 1;
        p[CHILD].is_in_handler = 1;
        p[CHILD].uuid = p[PARENT].uuid;
        p[CHILD].wire = p[PARENT].wire;
        p[CHILD].attempt = p[PARENT].attempt;
        p[CHILD].is_table_whole = p[PARENT].is_table_whole;
        readers[PARENT]++ };
    /* the child's handler */
    d_step {
#ifdef SHUTS_DOWN
        is_cut[PARENT] = 1;
#endif
#ifndef KEEPS_SOCKETS
        readers[PARENT]--;
#endif
#ifndef KEEPS_CONNECTION
        p[CHILD].wire = CHILD;
#endif
#ifndef SAME_UUID
        uuids++;
        p[CHILD].uuid = uuids;
        p[CHILD].attempt = 0;
#else
        p[CHILD].attempt = p[PARENT].attempt - (p[PARENT].attempt > 0);
#endif
#ifdef KEEPS_CLAIMS
        p[CHILD].phase = p[PARENT].phase;
#endif
        readers[CHILD] = 1;
        p[CHILD].is_in_handler = 0;
        check() }
}

proctype kills_parent()
{
    /* at any time */
    d_step { !is_write_locked -> p[PARENT].is_dead = 1; readers[PARENT]--; skip }
}

init
{
    d_step {
        p[PARENT].uuid = 1;
        p[PARENT].wire = PARENT;
        p[PARENT].is_born = 1;
        readers[PARENT] = 1;
        p[RIVAL].uuid = 2;
        p[RIVAL].wire = RIVAL;
        p[RIVAL].is_born = 1;
        readers[RIVAL] = 1;
        p[CHILD].wire = CHILD
    }
    atomic {
        run process(PARENT);
        run process(CHILD);
        run process(RIVAL);
        run forks();
#ifdef KILL
        run kills_parent();
#endif
    }
}
