/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A register store that loses data (libdmutex/registers/apply.c and session.c, rules D1 to D7): up to LOSSES times it
 * comes back empty, or with a copy of the name from any moment before, under another identity.  Two processes, one name;
 * the same copy may come back twice.
 *
 * A session belongs to one identity, so after a loss every reference in the copy is of another identity's session, and
 * the name is in doubt.  A hold is certain by the beats of the session that the value names: after a loss that is the
 * former session, whose beats are over, until the process has claimed the name with its present session.
 *
 * Time is ticks, which may come between any two steps.  A beat has its answer at once, or never: reg_session.pml has late
 * ones.  An acquire and a release with an answer are one step; a claim is executed at any moment after its sending,
 * because what counts is that the holder is certain at the sending.  A swap without an answer may be late.
 */
#ifndef LEASE
#define LEASE 3
#endif
#ifndef SURE
#define SURE 2
#endif
#ifndef ROUNDS0
#define ROUNDS0 1
#endif
#ifndef ROUNDS1
#define ROUNDS1 1
#endif
#ifndef UNKNOWNS
#define UNKNOWNS 0
#endif
#ifndef LOSSES
#define LOSSES 1
#endif
#ifndef MARK_WITHOUT_IDENTITY
#define MARK_WITHOUT_IDENTITY 0
#endif
#ifndef IS_SAME_IDENTITY
#define IS_SAME_IDENTITY 0
#endif
#define NOBODY 2
#define rounds_of(p) ((p) == 0 -> ROUNDS0 : ROUNDS1)

/* With REACH SPIN is to find a trace to the place of this number. */
#ifdef REACH
#define reached(n) assert(REACH != (n))
#else
#define reached(n) skip
#endif

/* clang-format off */
mtype = { IDLE, ASKS, HOLDS, RELEASES };
mtype = { ACQUIRE, RELEASE, CLAIM };
mtype = { OF_OTHER_DATA, PRESENT, FORMER }; /* the session that holds: FORMER ones are dead */
/* clang-format on */

/* ---- the store ----------------------------------------------------------------------------- */

byte losses;                   /* so many identities were there before this one */
byte hold = NOBODY, attempt;   /* the name's value */
mtype session = OF_OTHER_DATA; /* of the hold */
bool is_settled;               /* in this identity */
byte copied = NOBODY, copied_attempt;
bool is_quiet = true, has_mark = true; /* the mark of this identity; somebody has read it */
byte marked;                   /* ticks since */

/* ---- the processes ------------------------------------------------------------------------- */

mtype at[2] = IDLE;
byte own[2];          /* its attempt */
byte known[2];        /* the identity that it is connected to */
byte sure[2];         /* ticks, by its present session */
byte sure_before[2];  /* ... and by the session of the hold that is not claimed yet */
bool is_claimed[2];   /* the hold is by the present session */
bool has_session[2], is_killed[2];
byte silent[2];       /* ticks since the present session's last beat */
bool claims[2];       /* a claim is under way */
bool is_unsettled[2]; /* a swap of the present identity may come late */

/* Swaps under way: the claim, and one without an answer. */
bool claim_fits[2];
typedef Slot {
    bool is_used, fits, fits_copy, is_older; /* made for other data */
    mtype act;
    byte attempt;
};
Slot late[2];
byte unknowns = UNKNOWNS;
hidden byte x, act; /* inside a step */

#define is_certain(p) ((is_claimed[p] -> sure[p] : sure_before[p]) > 0)
#define is_connected(p) (known[p] == losses)
#define may_refer(p) (is_connected(p) && has_session[p] && !is_killed[p] && sure[p] > 0)
#define check() assert(!(at[0] == HOLDS && is_certain(0) && at[1] == HOLDS && is_certain(1))); /* EXCLUSION */

#ifdef SWAPS_NOT_BOUND
#define is_bound false
#else
#define is_bound true
#endif

/* ---- steps on the value -------------------------------------------------------------------- */

inline write(who, which, by)
{
    claim_fits[0] = false; claim_fits[1] = false;
    late[0].fits = false; late[1].fits = false;
    hold = who; attempt = which; session = by
}

#define write_nobody() write(NOBODY, 0, OF_OTHER_DATA)

/* D1, D2, D6. */
#ifdef NO_GRACE
#define may_settle true
#else
#define may_settle is_quiet
#endif

inline settle()
{
    if
    :: !is_settled && may_settle ->
       is_settled = true;
       if
       :: hold != NOBODY && session == OF_OTHER_DATA -> write_nobody()
       :: else
       fi
    :: else
    fi
}

/* D5: mine is session and attempt. */
#ifdef MINE_BY_ATTEMPT
#define is_hold_of(p, which) (hold == (p) && attempt == (which))
#else
#define is_hold_of(p, which) (hold == (p) && attempt == (which) && session == PRESENT)
#endif
#define is_free (hold == NOBODY || (session == FORMER) || (session == PRESENT && is_killed[hold]))

inline apply_acquire(p, which)
{
    settle();
    if
    :: is_settled && is_free -> write(p, which, PRESENT)
    :: else -> write(hold, attempt, session) /* in the queue, which reg_name.pml has */
    fi
}

#ifdef RELEASE_SETTLES
#define settle_at_release() is_settled = true
#else
#define settle_at_release() settle()
#endif
#ifdef RELEASE_IS_REPEATED
#define is_released(p, which) (hold == (p) && attempt == (which))
#else
#define is_released(p, which) is_hold_of(p, which)
#endif

/* In doubt nobody gets what is released. */
inline apply_release(p, which)
{
    settle_at_release();
    if
    :: is_released(p, which) -> write_nobody()
    :: else -> write(hold, attempt, session)
    fi
}

/* D4: over whatever the copy says, unless somebody has settled the name. */
inline apply_claim(p, which)
{
    settle();
    if
    :: !is_settled -> write(p, which, PRESENT); is_settled = true
    :: else -> write(hold, attempt, session)
    fi
}

/* ---- the processes ------------------------------------------------------------------------- */

inline hold_it(p)
{
    at[p] = HOLDS; is_claimed[p] = true; check(); reached(1)
}

inline end_hold(p)
{
    at[p] = IDLE; is_claimed[p] = false; sure_before[p] = 0
}

/* S7: the process ends the session with the hold. */
inline end_session(p)
{
    session = (hold == p && session == PRESENT -> FORMER : session);
    has_session[p] = false; is_killed[p] = false; sure[p] = 0; silent[p] = 0;
    is_unsettled[p] = false;
    claims[p] = false; claim_fits[p] = false
}

/*
 * Certainty has ended.  A hold that is claimed ends with the session.  If it is not, a claim may still come: it is taken
 * back, like a release.
 */
inline lose(p)
{
    if
    :: is_claimed[p] -> end_session(p); end_hold(p)
#ifndef CLAIM_IS_LEFT
    :: !is_claimed[p] && (claims[p] || is_unsettled[p]) -> at[p] = RELEASES; is_claimed[p] = true; sure_before[p] = 0
#endif
    :: else -> end_hold(p)
    fi
}

inline forget_late(p)
{
    late[p].is_used = false; late[p].fits = false; late[p].fits_copy = false; late[p].is_older = false;
    late[p].act = 0; late[p].attempt = 0
}

/* D3, D4: the process learns of other data. */
inline move(p)
{
    known[p] = losses;
    claims[p] = false; claim_fits[p] = false; is_unsettled[p] = false;
    if
    :: at[p] == HOLDS && is_claimed[p] -> sure_before[p] = sure[p]; is_claimed[p] = false
#ifndef RELEASE_IS_REPEATED
    :: at[p] == RELEASES -> end_hold(p)
#endif
    :: else
    fi;
    has_session[p] = false; is_killed[p] = false; sure[p] = 0; silent[p] = 0;
#ifdef HOLDS_GO_ON
    sure[p] = (at[p] == HOLDS -> sure_before[p] : 0);
    is_claimed[p] = is_claimed[p] || at[p] == HOLDS
#endif
}

#ifdef CLAIMS_UNSURE
#define may_claim(p) true
#define does_lose(p) (!is_certain(p) && is_claimed[p])
#else
#define may_claim(p) is_certain(p)
#define does_lose(p) (!is_certain(p))
#endif

/* The claim's answer: the hold is by the present session now. */
inline take_claim(p)
{
    if
    :: at[p] == HOLDS && is_hold_of(p, own[p]) && !is_claimed[p] ->
       is_claimed[p] = true; sure_before[p] = 0; check(); reached(2)
    :: else
    fi
}

#define process(p) \
    :: d_step { at[p] == IDLE && own[p] < rounds_of(p) -> \
        assert(!(hold == p && session == PRESENT && !late[p].is_used)); /* NOTHING_STAYS */ \
        own[p]++; at[p] = ASKS } \
    :: d_step { at[p] == ASKS && may_refer(p) && is_hold_of(p, own[p]) && (is_settled || may_settle) -> hold_it(p) } \
    :: d_step { at[p] == ASKS && may_refer(p) && !is_hold_of(p, own[p]) && (is_settled || may_settle) && \
        (is_free || session == OF_OTHER_DATA) -> \
        apply_acquire(p, own[p]); is_unsettled[p] = false; hold_it(p) } \
    :: d_step { at[p] == HOLDS && is_certain(p) && is_claimed[p] -> at[p] = RELEASES } \
    :: d_step { at[p] == RELEASES && is_connected(p) && !claims[p] && (is_released(p, own[p]) || is_unsettled[p]) -> \
        apply_release(p, own[p]); is_unsettled[p] = false; end_hold(p) } \
    :: d_step { at[p] == RELEASES && is_connected(p) && !claims[p] && !is_released(p, own[p]) && !is_unsettled[p] -> end_hold(p) } \
    :: d_step { at[p] == HOLDS && does_lose(p) -> lose(p); reached(4) } \
    /* D4 */ \
    :: d_step { at[p] == HOLDS && !is_claimed[p] && may_refer(p) && !claims[p] && may_claim(p) && !is_settled -> \
        claims[p] = true; claim_fits[p] = true } \
    :: d_step { at[p] == HOLDS && !is_claimed[p] && is_connected(p) && !claims[p] && is_hold_of(p, own[p]) -> take_claim(p) } \
    :: d_step { claims[p] && is_connected(p) && claim_fits[p] -> \
        apply_claim(p, own[p]); claims[p] = false; is_unsettled[p] = false; take_claim(p) } \
    :: d_step { claims[p] && !claim_fits[p] -> claims[p] = false } \
    /* no answer */ \
    :: d_step { unknowns > 0 && claims[p] && claim_fits[p] && !late[p].is_used && is_connected(p) -> \
        claims[p] = false; claim_fits[p] = false; lose_answer(p, CLAIM) } \
    :: d_step { unknowns > 0 && at[p] == ASKS && may_refer(p) && !late[p].is_used && !is_hold_of(p, own[p]) && \
        (is_settled || may_settle) && (is_free || session == OF_OTHER_DATA) -> lose_answer(p, ACQUIRE) } \
    :: d_step { unknowns > 0 && at[p] == RELEASES && is_connected(p) && !claims[p] && !late[p].is_used && \
        (is_released(p, own[p]) || is_unsettled[p]) -> lose_answer(p, RELEASE) } \
    :: d_step { late[p].is_used && late[p].fits -> run_late(p) } \
    :: d_step { late[p].is_used -> forget_late(p) } \
    /* beats */ \
    :: d_step { is_connected(p) && !is_killed[p] && (silent[p] > 0 || !has_session[p] || sure[p] < SURE) && may_beat(p) -> \
        silent[p] = 0; has_session[p] = true; sure[p] = SURE; check() } \
    :: d_step { is_connected(p) && !is_killed[p] && (silent[p] > 0 || !has_session[p]) && may_beat(p) -> \
        silent[p] = 0; has_session[p] = true } \
    :: d_step { is_connected(p) && is_killed[p] -> \
        if \
        :: at[p] == HOLDS && is_claimed[p] -> end_hold(p) \
        :: at[p] == RELEASES -> end_hold(p) \
        :: else \
        fi; \
        end_session(p) } \
    :: d_step { has_session[p] && !is_killed[p] && silent[p] == LEASE && hold == p && session == PRESENT -> is_killed[p] = true } \
    :: d_step { !is_connected(p) -> move(p) }

#ifdef BEATS_AFTER_A_LOSS_COUNT
#define may_beat(p) true
#else
#define may_beat(p) (!(at[p] == HOLDS && is_claimed[p] && sure[p] == 0))
#endif

inline lose_answer(p, what)
{
    unknowns--; is_unsettled[p] = true;
    late[p].is_used = true; late[p].fits = true; late[p].fits_copy = false; late[p].act = what; late[p].attempt = own[p]
}

/* The value was made when the swap was sent.  One that was made for other data names that identity. */
inline run_late(p)
{
    x = late[p].attempt; act = late[p].act;
    if
    :: late[p].is_older && act == RELEASE -> write_nobody(); reached(6)
    :: late[p].is_older && act != RELEASE -> write(p, x, OF_OTHER_DATA); reached(6)
    :: !late[p].is_older && act == ACQUIRE -> apply_acquire(p, x)
    :: !late[p].is_older && act == RELEASE -> apply_release(p, x)
    :: !late[p].is_older && act == CLAIM -> apply_claim(p, x)
    fi;
    forget_late(p);
    x = 0; act = 0;
    reached(5)
}

/* ---- the store's losses, and time ---------------------------------------------------------- */

/* The present version is also that of the copy, for swaps that are not bound to the identity. */
inline copy()
{
    copied = hold; copied_attempt = attempt;
    late[0].fits_copy = late[0].fits; late[1].fits_copy = late[1].fits
}

inline lose_data(is_copy)
{
    losses++;
    claim_fits[0] = false; claim_fits[1] = false;
    if
    :: is_copy -> hold = copied; attempt = copied_attempt
    :: else -> hold = NOBODY; attempt = 0
    fi;
    session = OF_OTHER_DATA; is_settled = IS_SAME_IDENTITY && is_copy;
    late[0].fits = late[0].fits_copy && is_copy && !is_bound;
    late[1].fits = late[1].fits_copy && is_copy && !is_bound;
    late[0].is_older = late[0].is_used; late[1].is_older = late[1].is_used;
    is_quiet = is_quiet && MARK_WITHOUT_IDENTITY; has_mark = false; marked = 0;
    if
    :: losses == LOSSES -> copied = NOBODY; copied_attempt = 0; late[0].fits_copy = false; late[1].fits_copy = false
    :: else
    fi
}

#define less(ticks) (ticks > 0 -> ticks - 1 : 0)

inline tick()
{
    sure[0] = less(sure[0]); sure[1] = less(sure[1]);
    sure_before[0] = less(sure_before[0]); sure_before[1] = less(sure_before[1]);
    silent[0] = (has_session[0] && silent[0] < LEASE -> silent[0] + 1 : silent[0]);
    silent[1] = (has_session[1] && silent[1] < LEASE -> silent[1] + 1 : silent[1]);
    marked = (has_mark && !is_quiet && marked < LEASE -> marked + 1 : marked)
}

active proctype world()
{
end:
    do
    process(0)
    process(1)
    :: d_step { losses < LOSSES && (copied != hold || copied_attempt != attempt) -> copy() }
    :: d_step { losses < LOSSES -> lose_data(true) }
    :: d_step { losses < LOSSES -> lose_data(false) }
    /* D2: the mark, by whoever is connected */
    :: d_step { !has_mark && (is_connected(0) || is_connected(1)) -> has_mark = true; marked = 0 }
    :: d_step { !is_quiet && marked == LEASE -> is_quiet = true; marked = 0; reached(3) }
    :: d_step { tick() }
    od
}
