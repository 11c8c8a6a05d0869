/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A failover by Sentinel, with the rules R3 and R6 (doc/design/sentinel.md): sentinels promote a server, the replaced
 * master continues as a writable master, and a client believes that master's answers only while the word of the
 * sentinels counts.  The promoted server grants nothing for a lease and `switch`.
 *
 * One client holds the lock and renews, or acquires again; a newcomer asks the promoted server.  The majority of the
 * sentinels is modelled as one, which learns of the switch at most half of `switch` after it (A8).  Answers of
 * sentinels and servers may take any time.  The promoted server has the hold, or lacks it.
 */
#ifndef LEASE
#define LEASE 3
#endif
#ifndef CERTAIN
#define CERTAIN 2 /* of the lease, for the client */
#endif
#ifndef HALF
#define HALF 1 /* of `switch` */
#endif
#define SWITCH (2 * HALF)
#ifdef GRACE_OF_ONE_LEASE
#define GRACE LEASE
#else
#define GRACE (LEASE + SWITCH)
#endif
#define LAST_SWITCH 2
#define END (LAST_SWITCH + GRACE + 2)

/* clang-format off */
mtype = { NONE, SENT, DONE };
/* clang-format on */

#define OLD 0
#define NEW 1

byte now = 1;

/* ---- the servers and the sentinels --------------------------------------------------------- */

bool is_switched, is_known; /* the sentinels' majority knows of the switch */
byte born;                  /* of the promoted server: its first client may come at once */
byte ends;                  /* the lease there */
bool is_holders, is_newcomers;

/* ---- the holder ---------------------------------------------------------------------------- */

bit at;                     /* the server of the word, and of the connection */
byte until = 1 + HALF;      /* the word counts */
mtype question = NONE;      /* to the sentinels */
byte asked;
bit said;
mtype request = NONE;       /* to the server `at` */
byte sent;
bool was_certain;           /* at the sending: the request is a renewal */
bool is_granted;
byte certain = 1 + CERTAIN; /* of the hold */

/* ---- the newcomer -------------------------------------------------------------------------- */

byte newcomer_certain;

inline check()
{
    assert(!(now < certain && now < newcomer_certain));
}

/* Forgets times that no longer prove anything. */
inline tick()
{
    now++;
    if
    :: certain <= now -> certain = 0
    :: else
    fi;
    if
    :: newcomer_certain <= now -> newcomer_certain = 0
    :: else
    fi;
    if
    :: ends <= now -> ends = 0
    :: else
    fi;
    if
    :: until < now -> until = 0
    :: else
    fi;
    if
    :: asked + HALF < now -> asked = 0
    :: else
    fi;
    if
    :: sent + CERTAIN <= now -> sent = 0
    :: else
    fi
}

/* A8: time does not pass while the sentinels would be uninformed for too long. */
#ifdef KNOWN_LATE
#define may_tick (now < END)
#else
#define may_tick (now < END && (!is_switched || is_known || now < born + HALF))
#endif

#ifdef WORD_IS_FOR_EVER
#define is_believed 1
#else
#define is_believed (now <= until)
#endif

/* The sentinels name another server: the connection is closed, and its reply counts as none. */
inline take_word()
{
    if
    :: said != at -> at = said; request = NONE; sent = 0; is_granted = 0; was_certain = 0
    :: else
    fi;
#ifdef WORD_FROM_THE_ANSWER
    until = now + HALF;
#else
    until = asked + HALF;
#endif
    question = NONE; asked = 0; said = 0
}

/* The replaced master does not know of the switch.  The promoted server takes renewals from the holder whose hold it
 * has or lost. */
inline serve()
{
    is_granted = 0;
    if
    :: at == OLD -> is_granted = 1
    :: at == NEW && !(is_newcomers && now < ends) && (was_certain || now >= born + GRACE) ->
       is_granted = 1; is_holders = 1; is_newcomers = 0; ends = now + LEASE
    :: else
    fi;
    was_certain = 0;
    request = DONE
}

inline take_reply()
{
    if
    :: is_granted && is_believed && sent + CERTAIN > certain -> certain = sent + CERTAIN
    :: else
    fi;
#if REACH == 1
    assert(!(at == OLD && is_switched && is_believed && is_granted && sent > born));
#endif
#if REACH == 2
    assert(!(at == NEW && is_granted && is_believed && now < born + GRACE));
#endif
    request = NONE; sent = 0; is_granted = 0; was_certain = 0
}

active proctype world()
{
end:
    do
    :: atomic { may_tick -> tick() }
    :: atomic { !is_switched && now <= LAST_SWITCH -> is_switched = 1; born = now }
    :: atomic { !is_switched && now <= LAST_SWITCH -> is_switched = 1; born = now; is_holders = 1; ends = now + LEASE }
    :: atomic { is_switched && !is_known -> is_known = 1 }

    :: atomic { question == NONE && now < END -> question = SENT; asked = now }
    :: atomic { question == SENT -> question = DONE; said = is_known }
    :: atomic { question == DONE -> take_word(); check() }

    :: atomic { request == NONE && now < END -> request = SENT; sent = now; was_certain = now < certain }
    :: atomic { request == SENT -> serve() }
    :: atomic { request == DONE -> take_reply(); check() }

    :: atomic {
        is_switched && !is_newcomers && now >= born + GRACE && !(is_holders && now < ends) ->
        is_newcomers = 1; is_holders = 0; ends = now + LEASE; newcomer_certain = now + CERTAIN;
#if REACH == 3
        assert(0);
#endif
        check()
       }
    od
}
