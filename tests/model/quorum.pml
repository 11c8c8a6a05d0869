/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A lock on a majority of three independent servers (core/quorum.h, Q1 and Q5): two clients, servers that restart
 * empty, answers and releases that are lost, requests that are executed late.
 *
 * Time is ticks, which may come between any two steps.  A client asks repeatedly, so a question may have been sent
 * at any time since the attempt began: a server executes a question of any such age, and no question has to be kept.
 * The answer is read at once or never, because a later reading proves no more: the lease counts from the sending.
 *
 * OLDER: the first server comes back with a copy of its data, and client 0, without a majority, releases all once and
 * continues with its attempt: so the copy may name an attempt that has released the lock since.
 */
#define SERVERS 3
#ifndef MAJORITY
#define MAJORITY 2
#endif
#ifndef LEASE
#define LEASE 3
#endif
#ifndef CERTAIN
#define CERTAIN 2 /* of the lease, for the client */
#endif
#ifndef GRACE
#define GRACE LEASE
#endif
#ifndef ATTEMPTS
#define ATTEMPTS 1 /* of client 0; client 1 has one */
#endif
#ifndef RESTARTS
#define RESTARTS 1
#endif
#ifndef LOSSES
#define LOSSES 0
#endif
#ifndef NO_GRACE
#define NO_GRACE 0
#endif

#define LONG_AGO (CERTAIN + 1)
#define leg(x, i) (3 * (x) + (i))
#define id_of(x) (1 + 2 * attempt[x] + (x)) /* the attempt as the servers name it; 0 is nobody */

/* clang-format off */
mtype = { IDLE, ASKS, HOLDS };
/* clang-format on */

/* ---- the servers --------------------------------------------------------------------------- */

byte owner[3]; /* as the last hold says, also when its lease has ended */
byte lease[3]; /* remaining ticks */
byte grace[3];
bool has_data[3];
#ifdef OLDER
byte copy_owner, copy_lease; /* of the first server; the lease in a copy also runs down */
bool has_copy, is_copied, has_given_up;
#endif

/* ---- the clients --------------------------------------------------------------------------- */

mtype phase[2] = IDLE;
byte attempt[2];
byte age[2];              /* of the attempt, at most CERTAIN: older questions prove nothing */
byte certain[6];          /* ticks for which a server is certain */
byte ended[6] = LONG_AGO; /* ticks since a server's certainty ended */
byte owes[6];             /* the release that is under way */
#ifdef FROM_THE_ANSWER
bool is_answered[6];      /* an answer is under way */
#endif
byte restarts, losses;

#define count_of(x) ((certain[3 * x] > 0) + (certain[3 * x + 1] > 0) + (certain[3 * x + 2] > 0))
#define owns(x) (phase[x] == HOLDS && count_of(x) >= MAJORITY)

/* ---- steps of a client --------------------------------------------------------------------- */

inline give_up(x)
{
    j = 0;
    do
    :: j < SERVERS ->
       owes[leg(x, j)] = id_of(x); certain[leg(x, j)] = 0; ended[leg(x, j)] = LONG_AGO;
#ifdef FROM_THE_ANSWER
       is_answered[leg(x, j)] = 0;
#endif
       j++
    :: else -> break
    od;
    j = 0; age[x] = 0
}

/* Releases all: by unlock, by loss, or for lack of a majority. */
inline give_back(x)
{
    give_up(x); phase[x] = IDLE; attempt[x]++
}

inline lose(x)
{
    if
    :: phase[x] == HOLDS && count_of(x) < MAJORITY -> give_back(x)
    :: else
    fi
}

inline check()
{
    assert(!(owns(0) && owns(1)));
    lose(0);
    lose(1)
}

inline believe(x)
{
    if
    :: phase[x] == ASKS && count_of(x) >= MAJORITY -> phase[x] = HOLDS
    :: else
    fi
}

/* The server confirms: certain from the sending, `old` ticks ago. */
inline confirm(x, i, old)
{
#ifdef FROM_THE_ANSWER
    is_answered[leg(x, i)] = 1
#else
    if
    :: old < CERTAIN && CERTAIN - old > certain[leg(x, i)] -> certain[leg(x, i)] = CERTAIN - old
    :: else
    fi
#endif
}

/* ---- steps of a server --------------------------------------------------------------------- */

/* lua/acquire.lua, as a try. */
inline serve_try(i, who)
{
    is_owned = 0;
    if
    :: lease[i] > 0 && owner[i] == who -> is_owned = 1
    :: lease[i] == 0 && (grace[i] == 0 || NO_GRACE) -> is_owned = 1; owner[i] = who; has_data[i] = 1
    :: else
    fi;
    if
    :: is_owned -> lease[i] = LEASE
    :: else
    fi
}

/* lua/renew.lua: the hold, even if its lease has ended and there was no later hold; or missing data. */
inline serve_renewal(i, who)
{
    is_owned = 0;
    if
    :: owner[i] == who || !has_data[i] -> is_owned = 1; owner[i] = who; has_data[i] = 1; lease[i] = LEASE
    :: else
    fi
}

/* Q5: a renewal, if the server was certain when the question was sent, `old` ticks ago. */
#ifdef RENEWS_ANYWHERE
#define is_renewal(x, i, old) (phase[x] == HOLDS)
#else
#define is_renewal(x, i, old) (phase[x] == HOLDS && (certain[leg(x, i)] > 0 || old > ended[leg(x, i)]))
#endif
#define is_try(x, i, old) (!is_renewal(x, i, old) && certain[leg(x, i)] == 0)

/* A question from before a restart is lost with its connection. */
#define is_under_way(x, i, old) \
    (phase[x] != IDLE && owes[leg(x, i)] == 0 && old <= age[x] && !(grace[i] > 0 && old > GRACE - grace[i]))

/* Until the grace ends, a server that has forgotten the hold grants nothing to others. */
#define is_harmless(x, i) (certain[leg(x, i)] <= grace[i])

/* In the grace a server grants nothing: a try that is "owned" is by a copy that is older than the end of the hold. */
#if defined BELIEVES_COPIES || NO_GRACE
#define is_believed(i) true
#else
#define is_believed(i) (grace[i] == 0)
#endif

inline renew(x, i, old)
{
    serve_renewal(i, id_of(x));
#if REACH == 1
    assert(!(is_owned && grace[i] > 0));
#endif
    if
    :: is_owned -> confirm(x, i, old)
    :: !is_owned && is_harmless(x, i)
#if REACH == 4
       -> assert(certain[leg(x, i)] == 0)
#endif
    :: else -> certain[leg(x, i)] = 0; ended[leg(x, i)] = LONG_AGO
    fi;
    is_owned = 0;
    believe(x);
    check()
}

inline try(x, i, old)
{
    serve_try(i, id_of(x));
#if REACH == 2
    assert(!(is_owned && phase[x] == HOLDS));
#endif
    if
    :: is_owned && is_believed(i) -> confirm(x, i, old)
    :: else
    fi;
    is_owned = 0;
    believe(x);
#if REACH == 3
    assert(!(x == 1 && phase[1] == HOLDS && restarts == 1 && attempt[0] == 1));
#endif
    check()
}

/* After the release, on an old connection: a question of the attempt that is over. */
inline be_late(i, who)
{
    losses++;
    serve_try(i, who);
    is_owned = 0
}

inline release(x, i)
{
    if
    :: owner[i] == owes[leg(x, i)] -> owner[i] = 0; lease[i] = 0
    :: else
    fi;
    owes[leg(x, i)] = 0
}

inline restart(i)
{
    owner[i] = 0; lease[i] = 0; has_data[i] = 0; grace[i] = GRACE;
#ifdef OLDER
    if
    :: i == 0 -> owner[i] = copy_owner; lease[i] = copy_lease; has_data[i] = has_copy
    :: else
    fi;
#endif
#ifdef FROM_THE_ANSWER
    is_answered[i] = 0; is_answered[3 + i] = 0;
#endif
    restarts++
}

inline tick()
{
#ifdef OLDER
    copy_lease = (copy_lease > 0 -> copy_lease - 1 : 0);
#endif
    j = 0;
    do
    :: j < SERVERS ->
       lease[j] = (lease[j] > 0 -> lease[j] - 1 : 0);
       grace[j] = (grace[j] > 0 -> grace[j] - 1 : 0);
       j++
    :: else -> break
    od;
    j = 0;
    do
    :: j < 2 * SERVERS ->
       ended[j] = (certain[j] == 1 -> 0 : (certain[j] == 0 && ended[j] < LONG_AGO -> ended[j] + 1 : ended[j]));
       certain[j] = (certain[j] > 0 -> certain[j] - 1 : 0);
       j++
    :: else -> break
    od;
    j = 0;
    age[0] = (phase[0] != IDLE && age[0] < CERTAIN -> age[0] + 1 : age[0]);
    age[1] = (phase[1] != IDLE && age[1] < CERTAIN -> age[1] + 1 : age[1]);
    check()
}

#define has_released(x) (owes[3 * x] == 0 && owes[3 * x + 1] == 0 && owes[3 * x + 2] == 0)

/* ---- all steps ----------------------------------------------------------------------------- */

#define questions(x, i, old) \
    :: d_step { is_under_way(x, i, old) && is_renewal(x, i, old) -> renew(x, i, old) } \
    :: d_step { is_under_way(x, i, old) && is_try(x, i, old) -> try(x, i, old) }

#ifdef FROM_THE_ANSWER
#define reading(x, i) \
    :: d_step { is_answered[leg(x, i)] -> is_answered[leg(x, i)] = 0; certain[leg(x, i)] = CERTAIN; believe(x); check() }
#else
#define reading(x, i)
#endif

/* A question is executed when it is sent, or a tick or two later; a release is executed, or lost. */
#define steps(x, i) \
    questions(x, i, 0) \
    questions(x, i, 1) \
    questions(x, i, 2) \
    reading(x, i) \
    :: d_step { owes[leg(x, i)] > 0 -> release(x, i) } \
    :: d_step { owes[leg(x, i)] > 0 && losses < LOSSES -> losses++; owes[leg(x, i)] = 0 } \
    :: d_step { owes[leg(x, i)] > 0 && losses < LOSSES -> be_late(i, owes[leg(x, i)]); owes[leg(x, i)] = 0 }

#define calls(x, attempts) \
    :: d_step { phase[x] == IDLE && attempt[x] < attempts && has_released(x) -> phase[x] = ASKS } \
    :: d_step { phase[x] != IDLE -> give_back(x) }

active proctype world()
{
    byte j;        /* counts inside a step, else 0 */
    bool is_owned; /* the answer inside a step, else 0 */

end:
    do
    :: d_step { tick() }
#ifdef ALL_AT_ONCE
    :: d_step { restarts < RESTARTS -> restart(0); restart(1); restart(2) }
#else
    :: d_step { restarts < RESTARTS -> restart(0) }
    :: d_step { restarts < RESTARTS -> restart(1) }
    :: d_step { restarts < RESTARTS -> restart(2) }
#endif
#ifdef OLDER
    :: d_step { !is_copied -> is_copied = 1; copy_owner = owner[0]; copy_lease = lease[0]; has_copy = has_data[0] }
    :: d_step { phase[0] == ASKS && !has_given_up -> has_given_up = 1; give_up(0) }
#endif
    calls(0, ATTEMPTS)
    calls(1, 1)
    steps(0, 0)
    steps(0, 1)
    steps(0, 2)
    steps(1, 0)
    steps(1, 1)
    steps(1, 2)
    od
}
