/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tokens on a majority of three independent servers (core/quorum.h, Q6): holds come one behind the other, as quorum.pml
 * shows, and a token that is told is higher than all that were told before.
 *
 * Each server grants by a token of its own: by its clock, and above its last one.  A hold's token is the highest of its
 * first majority; it is told once a majority has this token or a higher one, which a renewal brings there.  A server
 * that has lost its data grants nothing for a lease, and takes the token of the hold back.
 *
 * Time is ticks of STEP tokens each, more than there are grants in a run.  The clock of server 0 is AHEAD ticks ahead.
 */
#define SERVERS 3
#ifndef MAJORITY
#define MAJORITY 2
#endif
#ifndef LEASE
#define LEASE 3
#endif
#ifndef AHEAD
#define AHEAD 2
#endif
#ifndef HOLDS
#define HOLDS 3
#endif
#ifndef RESTARTS
#define RESTARTS 0
#endif
#define TICKS 7
#define STEP 10

/* ---- the servers --------------------------------------------------------------------------- */

byte now = 1;
byte last[3];   /* the newest token that the server knows */
byte silent[3]; /* ticks that are left of the grace */
byte restarts;

/* ---- the hold, as its client knows it ------------------------------------------------------ */

bool has[3];  /* the server has confirmed the hold */
byte leg[3];  /* the token that the server had then, or has since a renewal */
byte token;   /* of the hold; 0: no majority yet */
bool is_told; /* the token of this hold */
byte told;    /* the highest token that was told */
byte holds;   /* that have ended */

#ifdef NO_CLOCK
#define clock(i) 0
#else
#define clock(i) (STEP * (now + (i == 0 -> AHEAD : 0)))
#endif
#define higher(a, b) ((a) > (b) -> (a) : (b))
#define counted() (has[0] + has[1] + has[2])
#define has_token(i) (has[i] && leg[i] >= token)
#ifdef TOLD_AT_ONCE
#define is_firm() true
#else
#define is_firm() (has_token(0) + has_token(1) + has_token(2) >= MAJORITY)
#endif

/* ---- steps --------------------------------------------------------------------------------- */

/* A server that joins a hold gives a token at least as high as the hold's. */
inline grant(i)
{
    last[i] = higher(higher(last[i] + 1, clock(i)), token);
    leg[i] = last[i];
    has[i] = 1;
    if
    :: token == 0 && counted() >= MAJORITY -> token = higher(higher(leg[0], leg[1]), leg[2])
    :: else
    fi
}

inline renew(i)
{
    last[i] = higher(last[i], token);
    leg[i] = higher(leg[i], token)
}

inline tell()
{
    assert(token > told);
#ifdef REACH
    assert(!(restarts > 0 && told > 0));
#endif
    told = token;
    is_told = 1
}

/* By unlock, by loss, or for want of a majority. */
inline end_hold()
{
    has[0] = 0; has[1] = 0; has[2] = 0;
    leg[0] = 0; leg[1] = 0; leg[2] = 0;
    token = 0; is_told = 0;
    holds++
}

inline restart(i)
{
    last[i] = 0; silent[i] = LEASE; restarts++
}

inline tick()
{
    now++;
    silent[0] = (silent[0] > 0 -> silent[0] - 1 : 0);
    silent[1] = (silent[1] > 0 -> silent[1] - 1 : 0);
    silent[2] = (silent[2] > 0 -> silent[2] - 1 : 0)
}

#define steps(i) \
    :: d_step { holds < HOLDS && !has[i] && silent[i] == 0 -> grant(i) } \
    :: d_step { token > 0 && has[i] && leg[i] < token -> renew(i) } \
    :: d_step { token > 0 && has[i] && last[i] < token -> renew(i) } \
    :: d_step { restarts < RESTARTS -> restart(i) }

active proctype world()
{
end:
    do
    :: d_step { now < TICKS -> tick() }
    :: d_step { token > 0 && !is_told && is_firm() -> tell() }
    :: d_step { counted() > 0 -> end_hold() }
    steps(0)
    steps(1)
    steps(2)
    od
}
