/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tokens on a majority of three independent servers (core/quorum.h, Q6): holds follow one another, as quorum.pml shows,
 * and a token that is returned is higher than all that were returned before.
 *
 * Each server grants with its own token: from its clock, and above its last one.  A hold's token is settled at some
 * time at which a majority has the hold: the highest of two, the second of three.  It is returned once a majority has
 * this token or a higher one, which a renewal brings there.  A server that has lost its data grants nothing for a
 * lease, and gets the token of the hold back from a renewal.
 *
 * Time is ticks of STEP tokens each, more than there are grants in a run.  The clock of server 0 is AHEAD ticks ahead.
 *
 * LIAR: server 2 jumps: it gives any token from its honest one up, and reports a clock that fits, or one that does
 * not.  A token BOUND above the clock that two servers have reached is not believed.
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
#ifndef TICKS
#define TICKS 7
#endif
#define STEP 10
#define BOUND 40
#define JUMP 200 /* above all clocks, and the bound */

/* ---- the servers --------------------------------------------------------------------------- */

byte now = 1;
byte last[3];   /* the newest token that the server knows */
byte silent[3]; /* remaining ticks of the grace */
byte restarts;

/* ---- the hold, as its client knows it ------------------------------------------------------ */

bool has[3];  /* the server has confirmed the hold */
byte leg[3];  /* the token that the server had then, or has since a renewal */
byte token;   /* of the hold; 0: no majority yet */
bool is_told; /* the token of this hold */
#ifdef LIAR
byte false_clock;
#endif
byte told;    /* the highest token that was returned */
byte holds;   /* that have ended */

#ifdef NO_CLOCK
#define clock(i) 0
#else
#define clock(i) (STEP * (now + (i == 0 -> AHEAD : 0)))
#endif
#define higher(a, b) ((a) > (b) -> (a) : (b))
#define lower(a, b) ((a) < (b) -> (a) : (b))
#define second(a, b, c) higher(lower(a, b), lower(higher(a, b), c))
#define counted() (has[0] + has[1] + has[2])

#ifdef LIAR
#define told_clock(i) ((i) == 2 -> false_clock : clock(i))
#define heard_clock(i) (has[i] -> told_clock(i) : 0)
#else
#define heard_clock(i) 0
#endif
#if !defined LIAR || defined NO_BOUND
#define is_believed(number) true
#elif defined ITS_OWN_CLOCK
#define is_believed(number) ((number) <= higher(agreed, false_clock) + BOUND)
#else
#define is_believed(number) ((number) <= agreed + BOUND)
#endif

#ifdef LEAVES_JUMPS_OUT
#define is_counted(number) is_believed(number)
#else
#define is_counted(number) true
#endif

/* Inside a step: the clock that two servers have reached, and the tokens of the hold. */
hidden byte agreed, a, b, c;

inline look()
{
    a = heard_clock(0); b = heard_clock(1); c = heard_clock(2);
    agreed = second(a, b, c);
    a = (has[0] && is_counted(leg[0]) -> leg[0] : 0);
    b = (has[1] && is_counted(leg[1]) -> leg[1] : 0);
    c = (has[2] && is_counted(leg[2]) -> leg[2] : 0)
}

#ifdef TOLD_AT_ONCE
#define is_firm() true
#else
#define has_token(number) ((number) >= token && is_believed(number))
#define is_firm() (has_token(a) + has_token(b) + has_token(c) >= MAJORITY)
#endif

/* Of m servers all but one have given more than any token that was returned before. */
#ifdef ALWAYS_THE_HIGHEST
#define settled() higher(higher(a, b), c)
#elif defined ALWAYS_THE_SECOND
#define settled() second(a, b, c)
#else
#define settled() (counted() == SERVERS -> second(a, b, c) : higher(higher(a, b), c))
#endif

/* ---- steps --------------------------------------------------------------------------------- */

/* A server that joins a hold gives a token at least as high as the hold's. */
inline grant(i)
{
    last[i] = higher(higher(last[i] + 1, clock(i)), token);
    leg[i] = last[i];
    has[i] = 1
}

#ifdef LIAR
/* The lie of server 2, after its grant: tokens as far as the bound of each honest clock, or beyond; and a clock. */
inline lie(amount, shown)
{
    last[2] = higher(last[2], amount);
    leg[2] = last[2];
    false_clock = shown
}

#define lies \
    :: d_step { holds < HOLDS && !has[2] && silent[2] == 0 -> grant(2); lie(clock(1) + BOUND, clock(1)) } \
    :: d_step { holds < HOLDS && !has[2] && silent[2] == 0 -> grant(2); lie(clock(0) + BOUND, 0) } \
    :: d_step { holds < HOLDS && !has[2] && silent[2] == 0 -> grant(2); lie(JUMP, JUMP) } \
    :: d_step { holds < HOLDS && !has[2] && silent[2] == 0 -> grant(2); lie(JUMP, 0) }

/* The liar reaches no other server beyond the bound, and where all three have the hold, not at all. */
#define check_bound(i) assert(last[i] <= higher(clock(0), clock(1)) + BOUND + STEP)
#define check_settled() assert(token == 0 || counted() < SERVERS || token <= higher(leg[0], leg[1]))
#else
#define lies
#define check_bound(i) skip
#define check_settled() skip
#endif

/* As late as possible: ahead of a renewal. */
inline settle()
{
    look();
    token = (is_believed(settled()) -> settled() : 0);
    check_settled()
}

inline renew(i)
{
    last[i] = higher(last[i], token);
    leg[i] = higher(leg[i], token);
    check_bound(0);
    check_bound(1)
}

inline tell_now()
{
    assert(token > told);
#if REACH == 1
    assert(!(restarts > 0 && told > 0));
#elif REACH == 2
    assert(!(told > 0 && leg[2] == JUMP));
#endif
    told = token;
    is_told = 1
}

inline tell()
{
    look();
    if
    :: is_firm() -> tell_now()
    :: else
    fi
}

/* By unlock, by loss, or for lack of a majority. */
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
    :: d_step { token == 0 && counted() >= MAJORITY -> settle() }
    :: d_step { token > 0 && !is_told -> tell() }
    :: d_step { counted() > 0 -> end_hold() }
    steps(0)
    steps(1)
    steps(2)
    lies
    od
}
