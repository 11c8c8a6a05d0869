/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A mutex: acquire, grant, expiry, poll, renewal, cancel, release, with pauses, breaks of the
 * connection, lost messages and killed processes.  doc/design/models.md lists the parts left out, and the
 * functions of scripts and core that the parts of the model stand for.
 *
 * Time.  A tick may come between any two steps, so every delay, pause and stopped process
 * is covered.  The server's lease is LEASE ticks from a script; a client is certain while less
 * than CERTAIN ticks have passed since the client sent the request.  With DRIFT the server's clock runs
 * faster than the clients': one tick more in each CERTAIN ticks.
 *
 * Each script is one step, as on the server.  Each client is one thread of its own process; the loop thread's
 * steps for the client come in any order.
 *
 * TWOCOPIES.  Two servers, a master and a replica; each restart is a promotion of the replica.  The replica's
 * subscribers hear all messages of the master, and the master's count does not contain these subscribers.  A promotion
 * ends no connection: the command connection learns of the promotion by READONLY or ends, and an inbox stays at the
 * former server until the client opens the inbox again on the master (DEAFS).
 */
#ifndef CLIENTS
#define CLIENTS 2
#endif
/* ROUNDS: pairs of lock and unlock; SPARE: attempts that a client may begin besides.  Faults hit only client 0,
 * which represents any client: another run swaps the numbers of rounds. */
#ifndef ROUNDS0
#define ROUNDS0 2
#endif
#ifndef ROUNDS1
#define ROUNDS1 2
#endif
#ifndef SPARE0
#define SPARE0 1
#endif
#ifndef SPARE1
#define SPARE1 0
#endif
#define rounds_of(c) ((c) == 0 -> ROUNDS0 : ROUNDS1)
#define attempts_of(c) ((c) == 0 -> ROUNDS0 + SPARE0 : ROUNDS1 + SPARE1)
#define ATTEMPTS 7
#ifndef LEASE
#define LEASE 3
#endif
#ifndef CERTAIN
#define CERTAIN 2
#endif
#ifndef LEASE0 /* of client 0, if leases differ */
#define LEASE0 LEASE
#define CERTAIN0 CERTAIN
#endif
#ifndef REQUESTS
#define REQUESTS 3 /* requests of one attempt, at most; all are remembered: the core remembers four */
#endif
/* Numbers of events in a run, at most. */
#ifndef BREAKS
#define BREAKS 0 /* the command connection ends; replies in transit are lost */
#endif
#ifndef DEAFS
#define DEAFS 0 /* the inbox ends, with all messages inside, and is opened again */
#endif
#ifndef LOSSES
#define LOSSES 0 /* a message is counted as heard, and lost */
#endif
#ifndef KILLS
#define KILLS 0
#endif
#ifndef TIMEOUTS
#define TIMEOUTS 0 /* a waiting thread has waited long enough */
#endif
#ifndef RESTARTS
#define RESTARTS 0 /* the server comes back empty; with TWOCOPIES, the replica is promoted */
#endif
#define SILENT 2 /* ticks after which a waiter is passed over; GONE: ticks after which it is removed */
#define GONE 3
#define PLACES (CLIENTS + 2)
#define PIPE 3 /* unanswered commands of a client */
#define LETTERS 3

#ifdef ARRIVALS
#define HAS_ARRIVALS 1
#else
#define HAS_ARRIVALS 0
#endif
#ifdef TOKENS
#define ONE 1
#else /* fewer states: tokens are all 0 */
#define ONE 0
#endif

#ifdef ONLY /* a control of one invariant: -DONLY -DI1 */
#else
#define I1
#define I1_SERVER
#ifdef TOKENS
#define I2
#endif
#ifdef GHOSTS
#define I4
#endif
#define I5
#define I6
#ifdef ARRIVALS
#define I8
#endif
#define I12
#define HEARS
#endif

/* clang-format off */
mtype = { ACQUIRE, TRY, RELEASE, RENEW, POLL, CANCEL };
mtype = { OWNED, BUSY, QUEUED_AT, UNKNOWN, LEFT, RELEASED, CONFIRMED, LOST_IT };
mtype = { IDLE, ASKING, QUEUED, HELD, LOST, OVER };             /* phases of an attempt */
mtype = { ASKS, AWAITS, SLEEPS, CANCELS, DONE }; /* phases of a thread */
/* clang-format on */

#define id_of(c, a) (((c) + 1) * 16 + (a))
#define client_of(id) ((id) / 16 - 1)
#define attempt_of(id) ((id) % 16)
#define bit(a) (1 << (a))
/* _base.lua grace(): for one lease of an attempt, a new server grants the attempt nothing. */
#ifdef RELEASE_ENDS_GRACE
#define is_grace(id) (grace > 0 && !is_returned && LEASE - grace < lease_of(id))
bool is_returned; /* the script's grant follows a release */
#elif defined TWOCOPIES /* the caller passes, from the greeting, since when the server is there */
#define is_grace(id) (grace > 0 && is_up_to_date && LEASE - grace < lease_of(id))
bool is_up_to_date;
#else
#define is_grace(id) (grace > 0 && LEASE - grace < lease_of(id))
#endif
#define lease_of(id) (client_of(id) == 0 -> LEASE0 : LEASE)
#define certain_of(c) ((c) == 0 -> CERTAIN0 : CERTAIN)

/* ---- the server ---------------------------------------------------------------------------- */

byte ttl;   /* of lock; 0: no lock */
byte hold;  /* in state; 0: none */
byte token; /* in state */
bool wanted;
byte arrived;
typedef Place { byte id, request, heard, number };
Place queue[PLACES];
byte waiting;
bool is_blank; /* all data of the name is lost */
byte last;     /* with OLDER, the last token in state; new tokens come from the clock */
#ifdef OLDER /* the data of a replica, or of a file: a restarted server has these data */
bool is_copied, copy_wanted;
byte copy_ttl, copy_hold, copy_last, copy_waiting;
byte born; /* the newest token of the previous server; 0: the first server */
Place copy[PLACES];
#endif
#ifdef TWOCOPIES
bit master;          /* the run id of the server that executes scripts */
byte epoch = 1;      /* the master's replid: another with each promotion */
byte mark, copy_mark; /* born.lua: a part of the data */
#ifdef MARK_WITHOUT_REPLID
#define IDENTITY (master + 1)
#else
#define IDENTITY epoch
#endif
#endif
byte grace; /* ticks left of the longest grace of a new server; see is_grace() */

/* ---- a client ------------------------------------------------------------------------------ */

typedef Client {
    mtype phase = IDLE;
    mtype thread = ASKS;
    byte rounds;
    byte attempt;           /* serial of the attempt */
    byte last;              /* serial of the newest request */
    byte age[REQUESTS + 1]; /* ticks since each request was sent; CERTAIN: no longer proves anything */
    byte certain;           /* ticks for which the hold is certain */
    byte arrival;           /* the arrival number to bring back */
    byte token;             /* of the hold, with TOKENS */
    byte owed, posted;      /* attempts with a pending release; attempts with a release under way */
    byte asked, polled;     /* requests under way: the thread's, and a poll; 0: none */
    bool is_poll_due, is_renewal_due, is_renewing;
    bool is_up = 1;         /* the command connection */
    bool is_hearing = 1;    /* the inbox, as the client knows */
    bool is_subscribed = 1; /* the inbox, as the server knows */
    bool is_misheard;       /* the next message is counted and lost */
    bool is_dead;
#ifdef TWOCOPIES
    bit asks_at, hears_at;  /* run ids of the servers that the two connections lead to */
    byte greeted;           /* the identity of the server that greeted the commands */
#endif
};
Client k[CLIENTS];
chan command[CLIENTS] = [PIPE] of { mtype, byte, byte, byte };
chan reply[CLIENTS] = [PIPE] of { mtype, byte, byte, byte };
#ifdef TWOCOPIES
chan inbox[CLIENTS] = [LETTERS] of { byte, byte, byte, bit };
#define BY_WHOM , master
#define SKIP_WHOM , _
#define hears(c) (k[c].is_subscribed && k[c].hears_at == master)
#else
chan inbox[CLIENTS] = [LETTERS] of { byte, byte, byte };
#define BY_WHOM
#define SKIP_WHOM
#define hears(c) k[c].is_subscribed
#endif
#ifdef NO_KILL
chan stale[CLIENTS] = [PIPE] of { mtype, byte, byte, byte };
#endif

byte breaks = BREAKS, deafs = DEAFS, losses = LOSSES, kills = KILLS, timeouts = TIMEOUTS, restarts = RESTARTS;

/* For assertions: facts that no part of the protocol knows. */
byte released[CLIENTS]; /* attempts ended on the server, by release or cancel */
byte newest;            /* the highest token believed by a client */

/* Scratch, without meaning between steps. */
hidden byte i, j, n, id, request, owed, winner, number;
hidden mtype op, said;
hidden byte is_heard;

/* "Believes": the phase is HELD and the certainty has not ended. */
#define is_certain(c) (k[c].phase == HELD && k[c].certain > 0 && !k[c].is_dead)

inline check_belief()
{
    i = 0;
    do
    :: i < CLIENTS ->
        if
        :: is_certain(i) ->
#ifdef I1_SERVER
            assert(hold == id_of(i, k[i].attempt) && ttl > 0);
#endif
#ifdef I1
            j = i + 1;
            do
            :: j < CLIENTS -> assert(!is_certain(j)); j++
            :: else -> break
            od
#endif
        :: else
        fi;
        i++
    :: else -> break
    od
}

/* ---- the scripts --------------------------------------------------------------------------- */

/* _queue.lua forget(): removes the place [at]; the places after it move up. */
inline forget_at(at)
{
    j = at;
    waiting--;
    do
    :: j < waiting ->
        queue[j].id = queue[j + 1].id;
        queue[j].request = queue[j + 1].request;
        queue[j].heard = queue[j + 1].heard;
        queue[j].number = queue[j + 1].number;
        j++
    :: else -> break
    od;
    queue[waiting].id = 0;
    queue[waiting].request = 0;
    queue[waiting].heard = 0;
    queue[waiting].number = 0
}

/* Sets i to the place of an id, or to `waiting`. */
inline find(who)
{
    i = 0;
    do
    :: i < waiting && queue[i].id != who -> i++
    :: else -> break
    od
}

inline forget(who)
{
    find(who);
    if
    :: i < waiting -> forget_at(i)
    :: else
    fi
}

/* _tell.lua tell(): is_heard by the count of PUBSUB NUMSUB, without a message if the count is 0.  Formerly by the count
 * of PUBLISH, which also reaches the replica's subscribers (COUNTS_BY_PUBLISH) and counts patterns (PATTERNS). */
#ifdef COUNTS_BY_PUBLISH
#define is_told(c) k[c].is_subscribed
#else
#define is_told(c) hears(c)
#endif
#ifdef PATTERNS /* a PSUBSCRIBE of everything */
#define is_counted(c) true
#else
#define is_counted(c) hears(c)
#endif
inline tell_granted(who, its_request)
{
    is_heard = is_counted(client_of(who));
    if
    :: is_told(client_of(who)) ->
        if
        :: k[client_of(who)].is_misheard -> k[client_of(who)].is_misheard = 0
        :: else ->
            if
            :: k[client_of(who)].is_dead
            /* a repeated message; enough are in transit */
            :: !k[client_of(who)].is_dead && !is_heard && len(inbox[client_of(who)]) > 0
            :: else ->
                assert(len(inbox[client_of(who)]) < LETTERS);
                inbox[client_of(who)]!attempt_of(who), its_request, token + ONE BY_WHOM
            fi
        fi
    :: else
    fi
}

/* _grant.lua: the lock has the lease of the new owner. */
inline own(who)
{
#ifdef I4
    assert(!(released[client_of(who)] & bit(attempt_of(who))));
#endif
    hold = who;
    token = token + ONE;
    last = token;
    is_blank = 0;
#ifdef GRANT_FOR_THE_RELEASERS_LEASE
    ttl = lease_of(id)
#else
    ttl = lease_of(who)
#endif
}

/* I8: no waiter with an inbox that was heard from recently is before [place]. */
inline check_order(place)
{
    skip;
#ifdef I8
    j = 0;
    do
    :: j < waiting ->
        assert(queue[j].number >= place || queue[j].heard >= SILENT || !k[client_of(queue[j].id)].is_subscribed);
        j++
    :: else -> break
    od
#endif
}

/* _serve.lua serve(), _handover.lua and _offer.lua: grants the free lock to the first live waiter; me: alive in any
 * case. */
inline serve(me)
{
    winner = 0;
    i = 0;
    if
    :: waiting == 0 -> wanted = 0
    :: else
    fi;
    do
    :: i < waiting && winner == 0 && is_grace(queue[i].id) && queue[i].heard < GONE -> break
    :: i < waiting && winner == 0 && !(is_grace(queue[i].id) && queue[i].heard < GONE) ->
        if
        :: queue[i].id != me && queue[i].heard >= GONE -> forget_at(i)
        :: queue[i].id != me && queue[i].heard >= SILENT && queue[i].heard < GONE -> i++
        :: else ->
            is_heard = 1;
            if
            :: queue[i].id != me -> tell_granted(queue[i].id, queue[i].request)
            :: else
            fi;
            if
            :: is_heard ->
                winner = queue[i].id;
#ifdef HEARS /* no message grants a waiter without an inbox at the master */
                assert(winner == me || hears(client_of(winner)));
#endif
                check_order(queue[i].number);
                own(winner);
#ifndef NO_FORGET
                forget_at(i);
#endif
                if /* _grant.lua: a message that grants says whether others wait */
                :: winner != me && waiting == 0 -> wanted = 0
                :: else
                fi
            :: else -> i++
            fi
        fi
    :: else -> break
    od
}

/* _base.lua end_hold() */
inline give_up() { ttl = 0; hold = 0 }

#ifdef I4
#define note_release(who) released[client_of(who)] = released[client_of(who)] | bit(attempt_of(who))
#else
#define note_release(who) skip
#endif

/* acquire.lua: does the pending releases first. */
inline do_owed(me)
{
    skip;
#ifndef NO_NAMED_RELEASES
    n = 1;
    do
    :: n <= ATTEMPTS ->
        if
        :: owed & bit(n) ->
            if
            :: hold == id_of(client_of(me), n) -> give_up()
            :: else -> forget(id_of(client_of(me), n))
            fi;
            note_release(id_of(client_of(me), n))
        :: else
        fi;
        n++
    :: else -> break
    od
#endif
}

/* Ends a hold with an ended lease: a death, which robust.pml models. */
inline note_death()
{
    if
    :: ttl == 0 -> hold = 0
    :: else
    fi
}

#ifdef OWNER_WITHOUT_ATTEMPT
#define is_mine(who) (hold != 0 && client_of(hold) == client_of(who))
#else
#define is_mine(who) (hold == who)
#endif

/* _serve.lua still_owns(): false for an attempt named by an older copy, if the lease has ended: a new grant gives a new
 * token */
#if defined MINE_AT_ONCE
#define still_owns(who) is_mine(who)
#elif defined MINE_BY_AN_OLD_TOKEN /* after the grace */
#define still_owns(who) (is_mine(who) && (ttl > 0 || !is_grace(who)))
#else
#define still_owns(who) (is_mine(who) && (ttl > 0 || (!is_grace(who) && !IS_TOKEN_OLD)))
#endif
#ifdef OLDER
#define IS_TOKEN_OLD (born > 0 && last <= born)
#else
#define IS_TOKEN_OLD false
#endif

inline go_on(who)
{
#ifdef NO_LEASE_ON_REPEAT
    if
    :: ttl == 0 -> ttl = lease_of(who)
    :: else
    fi
#else
    ttl = lease_of(who)
#endif
}

inline enqueue(me)
{
    find(me);
    if
    :: i < waiting -> queue[i].request = request; queue[i].heard = 0
    :: else ->
        assert(waiting < PLACES);
        /* from here on owed is the arrival number to bring back; 0: none */
        if
        #ifdef ARRIVALS
        :: owed == 0 -> arrived++; owed = arrived
#else /* fewer states: a returning waiter goes to the front, a new waiter to the end */
        :: owed == 0 -> owed = 2
#endif
        :: else
        fi;
        j = waiting;
        do
        :: j > 0 && queue[j - 1].number > owed ->
            queue[j].id = queue[j - 1].id;
            queue[j].request = queue[j - 1].request;
            queue[j].heard = queue[j - 1].heard;
            queue[j].number = queue[j - 1].number;
            j--
        :: else -> break
        od;
        queue[j].id = me;
        queue[j].request = request;
        queue[j].heard = 0;
        queue[j].number = owed;
        waiting++
    fi;
#ifndef NO_WANTED
    wanted = 1
#endif
}

inline acquire(may_queue)
{
    if
    :: still_owns(id) -> go_on(id); said = OWNED
    :: else ->
        do_owed(id);
        note_death();
        if
        :: ttl == 0 && !wanted && !is_grace(id) ->
            check_order(255);
            own(id);
            said = OWNED
        :: else ->
            if
            :: may_queue -> owed = k[client_of(id)].arrival; enqueue(id)
            :: else
            fi;
            winner = 0;
            if
            :: ttl == 0 && !(is_grace(id) && !may_queue) -> serve(id)
            :: else
            fi;
            if
            :: winner == id -> said = OWNED
            :: winner != id && !may_queue && ttl == 0 && !is_grace(id) -> check_order(255); own(id); said = OWNED
            :: else -> said = (may_queue -> QUEUED_AT : BUSY)
            fi
        fi
    fi;
#ifdef I12 /* no client is told to wait for its own pending release */
    assert(said == OWNED || hold == 0 || client_of(hold) != client_of(id) || !(k[client_of(id)].owed & bit(attempt_of(hold))));
#endif
}

inline release()
{
    if
    :: is_mine(id) ->
        give_up();
        note_release(id);
#ifndef RELEASE_WITHOUT_GRANT
        if
        :: wanted ->
#ifdef RELEASE_ENDS_GRACE
            is_returned = 1;
            serve(0);
            is_returned = 0
#else
            serve(0)
#endif
        :: else
        fi;
#endif
#ifdef I6
        if
        :: hold == 0 -> check_order(255)
        :: else
        fi
#endif
    :: else -> forget(id); note_release(id)
    fi;
    said = RELEASED
}

#ifdef OLDER
#define is_newer (owed > last) /* owed: the token of the hold */
#else
#define is_newer false
#endif

inline renew()
{
#ifdef OLDER /* the attempt still waited there */
    if
    :: is_newer -> forget(id)
    :: else
    fi;
#endif
    if
    :: is_mine(id) || (is_blank && hold == 0) || is_newer -> is_blank = 0; hold = id; ttl = lease_of(id); last = (is_newer -> owed : last); said = CONFIRMED
    :: else -> said = LOST_IT
    fi
}

inline poll()
{
    if
    :: still_owns(id) -> go_on(id); said = OWNED
    :: else ->
        number = is_mine(id);
        note_death();
#ifdef OLDER
        if
        :: number -> owed = 0; enqueue(id)
        :: else
        fi;
#endif
        find(id);
        if
        :: i < waiting -> queue[i].request = request; queue[i].heard = 0; said = QUEUED_AT
        :: else -> said = UNKNOWN
        fi;
        winner = 0;
        if
        :: ttl == 0 -> n = (said == QUEUED_AT -> id : 0); serve(n)
        :: else
        fi;
        if
        :: winner == id -> said = OWNED
        :: else
        fi
    fi
}

inline cancel()
{
    if
    :: still_owns(id) -> go_on(id); said = OWNED
    :: else -> forget(id); note_release(id); said = LEFT
    fi
}

/* I5: each attempt is in one place at most. */
inline check_places()
{
    skip;
#ifdef I5
    i = 0;
    do
    :: i < waiting ->
        assert(queue[i].id != hold);
        j = i + 1;
        do
        :: j < waiting -> assert(queue[i].id != queue[j].id); j++
        :: else -> break
        od;
        i++
    :: else -> break
    od;
    assert(waiting == 0 || wanted)
#endif
}

inline run_script()
{
    if
    :: op == ACQUIRE -> acquire(true)
    :: op == TRY -> acquire(false)
    :: op == RELEASE -> release()
    :: op == RENEW -> renew()
    :: op == POLL -> poll()
    :: op == CANCEL -> cancel()
    fi
}

/* Whether the master is the server that greeted the client's connection; if not, READONLY or a second look (ROLE,
 * replid) ends the connection. */
#ifdef TWOCOPIES
#ifdef LOOKS_ONCE /* checks only when the connection is opened */
#define is_for_me(c) (k[c].asks_at == master)
#else
#define is_for_me(c) (k[c].asks_at == master && k[c].greeted == IDENTITY)
#endif
#else
#define is_for_me(c) true
#endif

inline execute(from, has_reply)
{
    from?op, id, request, owed;
    said = LEFT;
#ifdef TWOCOPIES
    is_up_to_date = k[client_of(id)].greeted == IDENTITY;
#endif
    if
    :: !is_for_me(client_of(id)) -> k[client_of(id)].is_up = 0
    :: else -> run_script()
    fi;
    check_places();
    check_belief();
    if
#if BREAKS + RESTARTS == 0 /* no release is sent again: the client knows the end at once, which saves states */
    :: has_reply && !k[client_of(id)].is_dead && said == RELEASED ->
        k[client_of(id)].owed = k[client_of(id)].owed & ~bit(attempt_of(id));
        k[client_of(id)].posted = k[client_of(id)].posted & ~bit(attempt_of(id))
    :: has_reply && !k[client_of(id)].is_dead && said != RELEASED ->
#else
    :: has_reply && !k[client_of(id)].is_dead && is_for_me(client_of(id)) ->
#endif
        number = token;
        if
        :: said == QUEUED_AT -> find(id); number = queue[i].number
        :: else
        fi;
        reply[client_of(id)]!said, attempt_of(id), request, number
    :: else
    fi
}
/* Named apart, for the traces. */
inline server_of(c) { d_step { len(command[c]) > 0 -> execute(command[c], k[c].is_up); skip } }

active proctype server()
{
end:
    do
    :: server_of(0)
    :: server_of(1)
#if CLIENTS > 2
    :: server_of(2)
#endif
#ifdef NO_KILL
    :: d_step { len(stale[0]) > 0 -> execute(stale[0], false); skip }
    :: d_step { len(stale[1]) > 0 -> execute(stale[1], false); skip }
#endif
#ifdef OLDER
    :: d_step { !is_copied ->
        copy_ttl = ttl; copy_hold = hold; copy_wanted = wanted; copy_last = last; copy_waiting = waiting;
#ifdef TWOCOPIES
        copy_mark = mark;
#endif
        is_copied = 1;
        i = 0;
        do
        :: i < PLACES ->
            copy[i].id = queue[i].id;
            copy[i].request = queue[i].request;
            copy[i].heard = queue[i].heard;
            copy[i].number = queue[i].number;
            i++
        :: else -> break
        od;
        skip }
#endif
#if RESTARTS > 0
    :: d_step {
        restarts > 0 -> restarts--;
#ifdef TWOCOPIES
        master = 1 - master;
        epoch++;
#endif
#ifdef OLDER
#ifdef TWOCOPIES
        mark = copy_mark;
#else
        born = token;
#endif
        ttl = copy_ttl; hold = copy_hold; wanted = copy_wanted; last = copy_last; waiting = copy_waiting;
        is_copied = 1;
        i = 0;
        do
        :: i < PLACES ->
            queue[i].id = copy[i].id;
            queue[i].request = copy[i].request;
            queue[i].heard = copy[i].heard;
            queue[i].number = copy[i].number;
            i++
        :: else -> break
        od;
#elif defined LOSES || !defined TWOCOPIES /* with LOSES the mark was copied before */
        is_blank = 1; /* token stays: the clock gives higher tokens */
        ttl = 0; hold = 0; wanted = 0;
        do
        :: waiting > 0 -> forget_at(waiting - 1)
        :: else -> break
        od;
#endif
#ifndef TWOCOPIES
        i = 0;
        do /* connections end; earlier answers may still be read */
        :: i < CLIENTS && len(command[i]) > 0 -> command[i]?_, _, _, _
        :: i < CLIENTS && len(command[i]) == 0 -> k[i].is_up = 0; i++
        :: else -> break
        od;
#ifdef GRACE
        grace = LEASE;
#endif
#endif
        skip }
#endif
#if defined TWOCOPIES && (defined OLDER || defined LOSES) /* a promotion of a replica with all data */
    :: d_step { restarts > 0 -> restarts--; master = 1 - master; epoch++ }
#endif
    od
}

#ifdef LIVENESS /* after a try without an inbox, the next request waits for the inbox */
#define may_ask(c) (k[c].is_hearing || k[c].last == 0)
#else
#define may_ask(c) true
#endif

/* Whether a client can do something at once. */
#define is_awake(c)                                                                                                    \
    (k[c].thread == ASKS ||                                        \
     (k[c].thread == SLEEPS && k[c].phase != QUEUED) || (k[c].is_poll_due && !k[c].polled && k[c].phase == QUEUED) ||  \
     (k[c].is_renewal_due && !k[c].is_renewing && k[c].phase == HELD) || (k[c].owed & ~k[c].posted) ||                 \
     len(reply[c]) > 0 || len(inbox[c]) > 0 || !k[c].is_up || !k[c].is_hearing)
#define is_busy(c) (len(command[c]) > 0 || (!k[c].is_dead && is_awake(c)))

#if CLIENTS > 2
#define ALL_QUIET (!is_busy(0) && !is_busy(1) && !is_busy(2))
#else
#define ALL_QUIET (!is_busy(0) && !is_busy(1))
#endif

/* ---- time ---------------------------------------------------------------------------------- */

inline server_ticks()
{
    ttl = (ttl > 0 -> ttl - 1 : 0);
#ifdef OLDER
    copy_ttl = (copy_ttl > 0 -> copy_ttl - 1 : 0);
#endif
    grace = (grace > 0 -> grace - 1 : 0);
#ifdef SILENCE
    i = 0;
    do
    :: i < waiting -> queue[i].heard = (queue[i].heard < GONE -> queue[i].heard + 1 : GONE); i++
    :: else -> break
    od
#endif
}

inline clients_tick()
{
    i = 0;
    do
    :: i < CLIENTS ->
        j = 1;
        do
        :: j <= REQUESTS -> k[i].age[j] = (k[i].age[j] < certain_of(i) -> k[i].age[j] + 1 : certain_of(i)); j++
        :: else -> break
        od;
        k[i].certain = (k[i].certain > 0 -> k[i].certain - 1 : 0);
#ifdef LIVENESS
        k[i].is_poll_due = k[i].is_poll_due || (k[i].phase == QUEUED && !k[i].is_dead);
        k[i].is_renewal_due = k[i].is_renewal_due || (k[i].phase == HELD && !k[i].is_dead);
#endif
        i++
    :: else -> break
    od
}

#ifdef DRIFT
byte gain; /* ticks of the clients since the server's clock gained a tick */
#endif

active proctype clock()
{
end:
    do
#ifdef LIVENESS /* time passes when no client can do anything: otherwise a client could be slow forever */
    :: d_step { ALL_QUIET -> server_ticks(); clients_tick(); skip }
#else
    :: d_step { server_ticks(); clients_tick();
#ifdef DRIFT
        gain = (gain < CERTAIN -> gain + 1 : CERTAIN);
#endif
        check_belief(); skip }
#ifdef DRIFT
    :: d_step { gain == CERTAIN -> gain = 0; server_ticks(); check_belief(); skip }
#endif
#endif
    od
}

/* A hold no longer certain is lost, not renewed.  RENEWS_LATE: a thread stopped between the check and the sending
 * renews the hold after all, which is harmless except on a server that lost its data. */
#ifdef RENEWS_LATE
#define is_renewable(c) (k[c].phase == HELD)
#else
#define is_renewable(c) is_certain(c)
#endif

/* Polls and renewals go out at any time, or, for liveness, once in a tick. */
#ifdef LIVENESS
#define is_poll_due(c) k[c].is_poll_due
#define is_renewal_due(c) k[c].is_renewal_due
#define poll_soon(c) k[c].is_poll_due = k[c].is_poll_due || k[c].phase == QUEUED
#define renew_soon(c) k[c].is_renewal_due = k[c].is_renewal_due || k[c].phase == HELD
#else
#define is_poll_due(c) true
#define is_renewal_due(c) true
#define poll_soon(c) skip
#define renew_soon(c) skip
#endif

/* ---- the core: core/hold.c ----------------------------------------------------------------- */

/* dm_hold_send() */
inline send(c, what)
{
    k[c].last++;
    k[c].age[k[c].last] = 0;
    command[c]!what, id_of(c, k[c].attempt), k[c].last, k[c].owed
}

#define may_post(c) (!k[c].is_up || len(command[c]) + len(reply[c]) < PIPE)

#ifdef LIVENESS /* no message is read late there: serials may wrap around */
#define may_send(c) (len(command[c]) + len(reply[c]) < PIPE && k[c].is_up)
#define make_serial(c)                                                                                                 \
    if                                                                                                                 \
    :: k[c].last == REQUESTS -> k[c].last = 0                                                                          \
    :: else                                                                                                            \
    fi
#else
#define may_send(c) (len(command[c]) + len(reply[c]) < PIPE && k[c].is_up && k[c].last < REQUESTS)
#define make_serial(c) skip
#endif

inline forget_requests(c)
{
    j = 1;
    do
    :: j <= REQUESTS -> k[c].age[j] = certain_of(c); j++
    :: else -> break
    od;
    k[c].last = 0
}

inline forget_plans(c)
{
    forget_requests(c);
    k[c].certain = 0;
    k[c].asked = 0;
    k[c].polled = 0;
    k[c].is_poll_due = 0;
    k[c].is_renewal_due = 0;
    k[c].is_renewing = 0
}

/* dm_registry_rename(): draws another serial, for a new claim or for a claim that the server has forgotten. */
inline rename(c)
{
    forget_plans(c);
    if
    :: k[c].attempt < attempts_of(c) -> k[c].attempt++; k[c].phase = ASKING
    :: else -> /* beyond the bounds */
#ifdef LIVENESS
        assert(false);
#endif
        k[c].phase = OVER;
        k[c].thread = DONE
    fi
}

/* on_owned(): takes an answer or a message that names request r. */
inline on_owned(c, r, its_token)
{
    if
    :: k[c].phase == HELD -> k[c].certain = (certain_of(c) - k[c].age[r] > k[c].certain -> certain_of(c) - k[c].age[r] : k[c].certain)
    :: k[c].phase == ASKING || k[c].phase == QUEUED ->
        if
        :: k[c].age[r] >= certain_of(c) -> k[c].phase = ASKING; k[c].is_poll_due = 0 /* a hint */
        :: else ->
            k[c].phase = HELD;
            k[c].certain = certain_of(c) - k[c].age[r];
#ifdef I2
            assert(its_token > newest);
#endif
            newest = its_token;
            k[c].token = its_token;
            k[c].is_poll_due = 0
        fi
    :: else /* lost or over: the release is under way */
    fi
}

/* on_time(): the end of certainty. */
inline lose(c)
{
    k[c].phase = LOST;
    k[c].is_renewal_due = 0;
    k[c].owed = k[c].owed | bit(k[c].attempt)
}

inline take_reply(c)
{
    reply[c]?said, id, request, number;
    if
    :: said == RELEASED -> k[c].owed = k[c].owed & ~bit(id); k[c].posted = k[c].posted & ~bit(id)
    :: said == CONFIRMED || said == LOST_IT ->
        if
        :: id == k[c].attempt ->
            k[c].is_renewing = 0;
            if
            :: k[c].phase == HELD && said == CONFIRMED ->
                k[c].certain = (certain_of(c) - k[c].age[request] > k[c].certain -> certain_of(c) - k[c].age[request] : k[c].certain)
            :: k[c].phase == HELD && said == LOST_IT -> lose(c)
            :: else
            fi
        :: else
        fi
    :: id == k[c].attempt && said != RELEASED && said != CONFIRMED && said != LOST_IT ->
        if
        :: said == OWNED -> on_owned(c, request, number)
        :: said == QUEUED_AT && (k[c].phase == ASKING || k[c].phase == QUEUED) -> k[c].phase = QUEUED; k[c].arrival = (number > 1 && !HAS_ARRIVALS -> 1 : number)
        :: said == UNKNOWN && k[c].phase == QUEUED && request == k[c].last ->
#ifdef NO_RENAME
            k[c].phase = ASKING
#else
            rename(c)
#endif
        :: else
        fi;
        if
        :: request == k[c].polled -> k[c].polled = 0
        :: request != k[c].polled && request == k[c].asked ->
            k[c].asked = 0;
            if
            :: k[c].thread == CANCELS && k[c].phase != HELD ->
                k[c].phase = OVER;
                k[c].owed = (said == LEFT -> k[c].owed : k[c].owed | bit(k[c].attempt))
            :: else
            fi;
            k[c].thread = (k[c].phase == ASKING -> ASKS : SLEEPS)
        :: else
        fi
    :: else
    fi
}

/* Forgets requests that no longer prove anything, because the hold has begun or ended: fewer states. */
inline forget_proofs(c)
{
    if
    :: k[c].phase == HELD && !k[c].asked && !k[c].polled && !k[c].is_renewing ->
        j = 1;
        do
        :: j <= REQUESTS -> k[c].age[j] = certain_of(c); j++
        :: else -> break
        od
    :: k[c].phase == LOST || k[c].phase == OVER ->
        j = 1;
        do
        :: j <= REQUESTS -> k[c].age[j] = certain_of(c); j++
        :: else -> break
        od
    :: else
    fi
}

#ifdef TWOCOPIES
#ifdef BELIEVES_ANY_SERVER
#define is_word_of_my_server(c) true
#else
#define is_word_of_my_server(c) (owed == k[c].hears_at)
#endif
#else
#define is_word_of_my_server(c) true
#endif

/* process/keep/inbox.c: ignores a message about an attempt that is no longer a claim; a message from another server
 * than the inbox's is only a hint. */
inline take_message(c)
{
#ifdef TWOCOPIES
    inbox[c]?id, request, number, owed;
#else
    inbox[c]?id, request, number;
#endif
    if
    :: id == k[c].attempt && !is_word_of_my_server(c) ->
        if
        :: k[c].phase == QUEUED -> k[c].phase = ASKING; k[c].is_poll_due = 0
        :: else
        fi
#ifdef MESSAGE_WITHOUT_ATTEMPT
    :: k[c].phase == ASKING || k[c].phase == QUEUED ->
#else
    :: id == k[c].attempt && is_word_of_my_server(c) ->
#endif
#ifdef MESSAGE_WITHOUT_REQUEST
        request = k[c].last;
#endif
#ifdef NO_T0
        k[c].age[request] = 0;
#endif
        on_owned(c, request, number)
    :: else
    fi
}

inline break_connection(c)
{
    k[c].is_up = 0;
    k[c].posted = 0;
    do
    :: len(reply[c]) > 0 -> reply[c]?_, _, _, _
    :: else -> break
    od;
#ifdef NO_KILL
    do
    :: len(command[c]) > 0 && len(stale[c]) < PIPE -> command[c]?op, id, request, owed; stale[c]!op, id, request, owed
    :: else -> break
    od;
#endif
    poll_soon(c);
    k[c].polled = 0;
    k[c].asked = 0;
    renew_soon(c);
    k[c].is_renewing = 0;
    if
    :: k[c].thread == AWAITS -> k[c].thread = (k[c].phase == ASKING -> ASKS : SLEEPS)
    :: k[c].thread == CANCELS -> /* no answer: leaves, and releases a grant that may come */
        k[c].phase = OVER;
        k[c].owed = k[c].owed | bit(k[c].attempt);
        k[c].thread = SLEEPS
    :: else
    fi
}

/* born.lua, called by the greeting of a connection: a server new to the data begins a grace. */
inline greet(c)
{
    skip;
#ifdef TWOCOPIES
    k[c].asks_at = master;
    k[c].greeted = IDENTITY;
    if
    :: mark != IDENTITY ->
#ifdef OLDER
        born = token;
#endif
#ifdef GRACE
        grace = (mark == 0 -> 0 : LEASE);
#endif
        mark = IDENTITY
    :: else
    fi
#endif
}

/* Awaits CLIENT KILL of the previous connection: the bytes in its buffers are lost. */
inline reconnect(c)
{
    do
    :: len(command[c]) > 0 -> command[c]?_, _, _, _
    :: else -> break
    od;
    greet(c);
    k[c].is_up = 1;
    poll_soon(c);
    renew_soon(c)
}

inline end_round(c)
{
    k[c].phase = IDLE;
    k[c].arrival = 0;
    k[c].token = 0;
    forget_plans(c);
    k[c].rounds++;
    k[c].thread = (k[c].rounds == rounds_of(c) -> DONE : ASKS);
    if
    :: k[c].thread == ASKS -> rename(c)
    :: else
    fi
}

/* The thread, and the loop thread's steps for the thread. */
proctype client(byte c)
{
end:
    do
    /* process/calls/acquire.c */
    :: d_step { !k[c].is_dead && k[c].thread == ASKS && k[c].phase == ASKING && may_send(c) && may_ask(c) ->
        make_serial(c);
#ifdef ENQUEUE_BEFORE_SUBSCRIBE
        send(c, ACQUIRE);
#else
        send(c, (k[c].is_hearing -> ACQUIRE : TRY));
#endif
        k[c].asked = k[c].last;
        k[c].thread = AWAITS }
    :: d_step { !k[c].is_dead && (k[c].thread == ASKS && k[c].phase != ASKING) -> k[c].thread = SLEEPS }
    :: d_step { !k[c].is_dead && k[c].thread == SLEEPS && k[c].phase == ASKING -> k[c].thread = ASKS }
    /* a hold lost before the thread entered: asks again; otherwise the thread finds the loss at the unlock */
    :: d_step { !k[c].is_dead && k[c].thread == SLEEPS && k[c].phase == LOST && k[c].attempt < attempts_of(c) -> k[c].thread = ASKS; rename(c) }
    :: d_step { !k[c].is_dead && k[c].thread == SLEEPS && k[c].phase == LOST -> end_round(c) }
    :: d_step { !k[c].is_dead && k[c].thread == SLEEPS && k[c].phase == OVER -> end_round(c) }
#if TIMEOUTS > 0
    :: d_step { !k[c].is_dead && k[c].thread == SLEEPS && k[c].phase == QUEUED && timeouts > 0 && may_send(c) ->
        timeouts--;
        make_serial(c);
        send(c, CANCEL);
        k[c].asked = k[c].last;
        k[c].thread = CANCELS }
#endif
    /* process/calls/release.c: the thread continues at once, as without an answer in time; a lost hold is not
     * unlocked */
    :: d_step { !k[c].is_dead && k[c].thread == SLEEPS && is_certain(c) && may_post(c) ->
        k[c].phase = OVER;
        k[c].owed = k[c].owed | bit(k[c].attempt);
        if
        :: k[c].is_up ->
            command[c]!RELEASE, id_of(c, k[c].attempt), 0, 0;
            k[c].posted = k[c].posted | bit(k[c].attempt)
        :: else
        fi;
        end_round(c) }
    /* process/keep/pump.c */
    :: d_step { !k[c].is_dead && k[c].phase == HELD && k[c].certain == 0 -> lose(c) }
    :: d_step { !k[c].is_dead && is_poll_due(c) && !k[c].polled && k[c].phase == QUEUED && may_send(c) ->
        k[c].is_poll_due = 0;
#ifndef NO_POLLS
        make_serial(c);
        send(c, POLL);
        k[c].polled = k[c].last
#endif
        }
    :: d_step { !k[c].is_dead && is_renewal_due(c) && !k[c].is_renewing && is_renewable(c) && may_send(c) ->
        make_serial(c);
        k[c].is_renewal_due = 0;
        k[c].is_renewing = 1;
        k[c].last++;
        k[c].age[k[c].last] = 0;
        command[c]!RENEW, id_of(c, k[c].attempt), k[c].last, k[c].token }
    :: d_step { !k[c].is_dead && (k[c].owed & ~k[c].posted) && may_post(c) && k[c].is_up ->
        j = 1;
        do
        :: (k[c].owed & ~k[c].posted & bit(j)) -> break
        :: else -> j++
        od;
        k[c].posted = k[c].posted | bit(j);
        command[c]!RELEASE, id_of(c, j), 0, 0 }
    /* arrivals */
    :: d_step { !k[c].is_dead && len(reply[c]) > 0 -> take_reply(c); forget_proofs(c); check_belief(); skip }
    :: d_step { !k[c].is_dead && len(inbox[c]) > 0 -> take_message(c); forget_proofs(c); check_belief(); skip }
    :: d_step { !k[c].is_dead && !k[c].is_up ->
#if RESTARTS > 0
        break_connection(c);
#endif
        reconnect(c); skip }
    :: d_step { !k[c].is_dead && !k[c].is_hearing ->
        k[c].is_hearing = 1;
        k[c].is_subscribed = 1;
#ifdef TWOCOPIES
        k[c].hears_at = master;
#endif
        poll_soon(c) }
#ifdef TWOCOPIES
    :: d_step { !k[c].is_dead && k[c].is_up && !is_for_me(c) -> break_connection(c) }
#endif
    od
}

/* ---- faults -------------------------------------------------------------------------------- */

inline faults_of(c)
{
    if
    :: d_step { breaks > 0 && k[c].is_up && !k[c].is_dead && k[c].thread != DONE -> breaks--; break_connection(c) }
    :: d_step { deafs > 0 && k[c].is_hearing && !k[c].is_dead && k[c].thread != DONE ->
        deafs--;
        k[c].is_hearing = 0;
        k[c].is_subscribed = 0;
        do
        :: len(inbox[c]) > 0 -> inbox[c]?_, _, _ SKIP_WHOM
        :: else -> break
        od; skip }
    :: d_step { losses > 0 && !k[c].is_misheard && !k[c].is_dead && k[c].thread != DONE -> losses--; k[c].is_misheard = 1 }
    :: d_step { kills > 0 && !k[c].is_dead && k[c].thread != DONE ->
        kills--;
        k[c].is_dead = 1;
        do
        :: len(inbox[c]) > 0 -> inbox[c]?_, _, _ SKIP_WHOM
        :: len(reply[c]) > 0 -> reply[c]?_, _, _, _
        :: else -> break
        od;
        k[c].is_poll_due = 0;
        k[c].is_renewal_due = 0 }
    /* the server learns of the death later */
    :: d_step { k[c].is_dead && k[c].is_subscribed -> k[c].is_subscribed = 0 }
    fi
}

proctype faults()
{
end:
    do
    :: faults_of(0)
    od
}

init
{
    d_step {
        i = 0;
        do
        :: i < CLIENTS ->
            rename(i);
            greet(i);
#ifdef NOT_YET_SUBSCRIBED
            k[i].is_hearing = 0;
            k[i].is_subscribed = 0;
#endif
            i++
        :: else -> break
        od
    }
    atomic {
        run client(0);
        run client(1);
#if CLIENTS > 2
        run client(2);
#endif
#if BREAKS + DEAFS + LOSSES + KILLS > 0
        run faults();
#endif
    }
}

#ifdef LIVENESS
#define is_through(c) (k[c].thread == DONE || k[c].is_dead)
ltl all_get_through
{
#if CLIENTS > 2
    <>(is_through(0) && is_through(1) && is_through(2))
#else
    <>(is_through(0) && is_through(1))
#endif
}
#endif
