/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The line of one name inside a process: seats, the asker, passing and waking, tenures with their words, the lock
 * without the state lock, kept leases, `wanted`, marks, deaths.  Two processes, up to four threads, one server.
 *
 * A section under the state lock is one step, a script is one step; the lock without the state lock is load, swap and
 * clock, an unlock without the state lock is clock and swap.  lock.pml models requests and their times: here the
 * certainty of a hold ends at any time (LAPSES), and the server's lease at any later time.
 *
 * Time passes when no process can do anything at once: waiters poll, holds are renewed, the leases of dead processes
 * end.  RESTS is how often in a row time may pass before a thread must have got the lock: 0 says that messages suffice.
 */
#ifndef SPLIT
#define SPLIT 2 /* threads 0 to SPLIT - 1 are of process 0 */
#endif
#ifndef R0
#define R0 1 /* how often the thread locks */
#endif
#ifndef R1
#define R1 1
#endif
#ifndef R2
#define R2 1
#endif
#ifndef R3
#define R3 0
#endif
#ifndef LIMIT
#define LIMIT 3 /* local holds by one token of the server */
#endif
#ifndef WIDTH
#define WIDTH (LIMIT + 1) /* the room for the local number in a token */
#endif
#ifndef QUOTA
#define QUOTA 1 /* local holds after `wanted` */
#endif
#ifndef RESTS
#define RESTS 2
#endif
#ifdef KEEPS
#define IS_LINGERING true
#else
#define IS_LINGERING false
#endif
#ifdef ROBUST
#define IS_ROBUST true
#define MARK TELLS
#else
#define IS_ROBUST false
#ifdef MARK_TELLS_ONLY
#define MARK TELLS
#else
#define MARK TELLS_AND_NO_DEATH
#endif
#endif
#ifdef ANSWER_BEFORE_CLOCK
#define IS_ANSWER_FIRST true
#else
#define IS_ANSWER_FIRST false
#endif
#ifdef ROBUST_BARGES
#define IS_PASSING false
#else
#define IS_PASSING IS_ROBUST
#endif
/* Numbers of events, at most. */
#ifndef LAPSES
#define LAPSES 0
#endif
#ifndef KILLS
#define KILLS 0
#endif
#ifndef ENDS
#define ENDS 0
#endif
#ifndef TIMEOUTS
#define TIMEOUTS 0
#endif
#ifndef LOSSES
#define LOSSES 0
#endif
#ifndef BREAKS
#define BREAKS 0
#endif
#ifndef TIMES
#define TIMES 0 /* the 10 ms after `wanted` are over */
#endif
#ifndef LINGERS
#define LINGERS 0 /* the end of a linger */
#endif

#ifndef ONLY
#define EXCLUSION
#define TOKENS
#define GIVEN_BACK
#define DEATHS
#define BOUND
#define REST
#endif
#ifdef REACH
#define reached(n) assert(REACH != (n))
#else
#define reached(n) skip
#endif

#define THREADS 4
#define PROCESSES 2
#define SEATS 3
#define RECORDS 2
#define PIPE 4
#define LETTERS 4
#define WAITERS 6

/* clang-format off */
mtype = { NONE, ASKS, QUEUED, OWNS };                               /* a line's claim */
mtype = { OUT, LOADED, SWAPPED, GOES_OUT, SLOW, SEATED, WOKEN, AWAITS, SETTLES, PASSED, INSIDE, LEAVES, LEAVES_SLOWLY, ENDED, SITS };
mtype = { ACQUIRE, RELEASE, RENEW, CANCEL, GRANTED, WANTED, LEFT, DONE_SO, NOT_OWNER };
mtype = { NO_MARK_YET, TELLS, TELLS_AND_NO_DEATH };
mtype = { POOLED, USED, DETACHED };
/* clang-format on */

#define process_of(t) ((t) >= SPLIT)
#define bit(a) (1 << (a))
#define id_of(p, a) (((p) + 1) * 16 + (a))
#define client_of(id) ((id) / 16 - 1)
#define attempt_of(id) ((id) % 16)

/* ---- the server ---------------------------------------------------------------------------- */

byte hold; /* not released yet; 0: none */
bool is_held;
mtype mark = NO_MARK_YET;
byte token;
bool is_unmended; /* health: a death that no robust holder knows of */
byte queue[WAITERS], waiting;

/* ---- a process ----------------------------------------------------------------------------- */

/* A record of the pool, for one hold of the server. */
typedef Tenure {
    mtype state = POOLED;
    byte holder; /* in the word: the thread + 1; 0: nobody */
    bool is_open, has_look;
    bool is_certain, is_late; /* the clock: certainty; the bound in time is over */
    byte number, last;        /* the holder's number, the highest */
    byte attempt, token;
    bool is_owner_dead; /* the next to enter learns of it */
};
typedef Process {
    mtype claim = NONE;
    byte attempt;  /* of the claim */
    byte made;     /* attempts so far */
    byte x;        /* the record, while the claim owns */
    byte seat[SEATS], seated;
    byte awake;    /* the woken seat + 1, until its thread runs */
    bool is_starving, is_wanted, is_marked, is_renewal_due;
    byte question; /* the attempt with an acquire or cancel that is not answered; 0: none */
    byte asker;    /* its thread */
    byte again;    /* the attempt of a question to repeat */
    byte named;    /* releases that the question names, in bits */
    byte owed, died, posted; /* releases: wanted, as a death, under way */
    bool is_down, is_dead;
    Tenure record[RECORDS];
    byte since; /* ghost: holds since the process knew of others */
};
Process pro[PROCESSES];
typedef Thread {
    mtype at = OUT;
    byte x; /* the record that the thread has read from the table, or holds */
    byte rounds;
};
Thread thread[THREADS];
chan pipe[PROCESSES] = [PIPE] of { mtype, byte, byte, byte };
chan reply[PROCESSES] = [PIPE] of { mtype, mtype, byte, byte, bool };
chan inbox[PROCESSES] = [LETTERS] of { mtype, byte, byte, bool };

byte lapses = LAPSES, kills = KILLS, ends = ENDS, timeouts = TIMEOUTS, losses = LOSSES, breaks = BREAKS,
     times = TIMES, lingers = LINGERS;

/* Ghosts. */
byte newest;                  /* the newest token that a thread got */
short between[PROCESSES];     /* attempts, in bits, between grant and unlock */
short counted[PROCESSES];     /* attempts whose death is in must_tell already */
short released[PROCESSES];    /* attempts, in bits, whose release was executed */
bool must_tell;               /* a death that no thread knows of */
byte rests;

hidden byte i, j, m, id, a, h, named, deaths, winner, new, kept;
hidden byte flag, is_grant;
hidden mtype op, said, was;

#define line pro[p]
#define tenure pro[p].record[pro[p].x]
#define owner_record pro[process_of(t)].record[thread[t].x]
#define is_below(r) (r.number < r.last && !r.is_late)
#define may_send(p) (!pro[p].is_down && !pro[p].is_dead && len(pipe[p]) + len(reply[p]) < PIPE)

/* ---- ghosts -------------------------------------------------------------------------------- */

inline begin_between(p, n) { between[p] = between[p] | bit(n); counted[p] = counted[p] & ~bit(n) }
/* Once the lease has ended the server reports a death, even if the process releases the hold. */
inline end_between(p, n)
{
    if
    :: hold == id_of(p, n) && !is_held
    :: else -> between[p] = between[p] & ~bit(n)
    fi
}

/* A death of attempt n is about to be reported; that is wrong unless a thread was inside. */
inline count_death(p, n)
{
#ifdef DEATHS
    assert(between[p] & bit(n)); /* died */
#endif
    if
    :: !(counted[p] & bit(n)) -> must_tell = 1; counted[p] = counted[p] | bit(n)
    :: else
    fi
}

/* ---- scripts ------------------------------------------------------------------------------- */

inline remove_waiter(place)
{
    j = place;
    waiting--;
    do
    :: j < waiting -> queue[j] = queue[j + 1]; j++
    :: else -> break
    od;
    queue[j] = 0
}

/* Sets m to the place of an id, or to the count. */
inline find(who)
{
    m = 0;
    do
    :: m < waiting && queue[m] != who -> m++
    :: else -> break
    od
}

inline tell(what, who, tok, told)
{
    if
    :: pro[client_of(who)].is_dead
    :: else ->
        assert(nfull(inbox[client_of(who)]));
        inbox[client_of(who)]!what, attempt_of(who), tok, told
    fi
}

inline end_hold(is_death)
{
    if
    :: is_death -> is_unmended = 1
    :: else
    fi;
    hold = 0;
    is_held = 0;
    mark = NO_MARK_YET
}

inline note_death()
{
    if
    :: hold != 0 && !is_held ->
        if
#ifdef DEATH_OF_KEPT
        :: true ->
#else
        :: mark != TELLS_AND_NO_DEATH ->
#endif
            h = hold;
            count_death(client_of(h), attempt_of(h));
            end_hold(1)
        :: else -> end_hold(0)
        fi
    :: else
    fi
}

/* me: the caller, alive by this request. */
inline serve(me)
{
    winner = 0;
    do
    :: waiting > 0 && winner == 0 ->
        id = queue[0];
        remove_waiter(0);
        if
        :: pro[client_of(id)].is_dead && id != me
        :: else ->
            winner = id;
            hold = id;
            is_held = 1;
            mark = NO_MARK_YET;
            token++;
            begin_between(client_of(id), attempt_of(id));
#ifdef GIVEN_BACK
            assert(!(released[client_of(id)] & bit(attempt_of(id))));
#endif
            if
            :: pro[client_of(id)].is_dead -> must_tell = 1; counted[client_of(id)] = counted[client_of(id)] | bit(attempt_of(id))
            :: else
            fi;
            if
            :: id != me -> tell(GRANTED, id, token, is_unmended)
            :: else
            fi;
            if
            :: !IS_ROBUST -> is_unmended = 0; must_tell = 0
            :: else
            fi
        fi
    :: else -> break
    od
}

/* The holder's process hears of the first attempt of the queue, if the hold has a mark. */
inline tell_owner()
{
    skip;
#ifndef NO_WANTED
    if
    :: waiting == 1 && hold != 0 && is_held && mark != NO_MARK_YET -> tell(WANTED, hold, 0, 0)
    :: else
    fi
#endif
}

/* The release of attempt n, from an owed bit or a request. */
inline do_release(p, n, is_death)
{
#ifdef GIVEN_BACK
    released[p] = released[p] | bit(n);
#endif
    if
    :: hold == id_of(p, n) ->
        if
        :: is_death -> count_death(p, n)
        :: else
        fi;
        end_hold(is_death)
    :: else ->
        find(id_of(p, n));
        if
        :: m < waiting -> remove_waiter(m)
        :: else
        fi
    fi
}

inline acquire(p)
{
    if
    :: hold == id_of(p, a) -> is_held = 1; said = OWNS
    :: else ->
        i = 1;
        do
        :: i < 8 ->
            if
            :: named & bit(i) -> do_release(p, i, ((deaths & bit(i)) != 0))
            :: else
            fi;
            i++
        :: else -> break
        od;
        note_death();
        find(id_of(p, a));
        if
        :: m < waiting
        :: else -> assert(waiting < WAITERS); queue[waiting] = id_of(p, a); waiting++; tell_owner()
        fi;
        said = QUEUED;
        if
        :: !is_held -> serve(id_of(p, a))
        :: else
        fi;
        said = (hold == id_of(p, a) -> OWNS : QUEUED)
    fi
}

inline release(p)
{
    flag = (hold == id_of(p, a));
    do_release(p, a, (deaths != 0));
    said = DONE_SO;
    if
    :: flag -> serve(0)
    :: else
    fi
}

inline renew(p)
{
    said = NOT_OWNER;
    flag = 0;
    if
    :: hold == id_of(p, a) ->
        is_held = 1;
        mark = MARK;
        flag = waiting > 0;
        said = DONE_SO
    :: else
    fi
}

inline cancel(p)
{
    said = LEFT;
    if
    :: hold == id_of(p, a) -> is_held = 1; said = OWNS
    :: else ->
        find(id_of(p, a));
        if
        :: m < waiting -> remove_waiter(m)
        :: else
        fi
    fi
}

inline server_of(p)
{
    d_step {
        len(pipe[p]) > 0 ->
        pipe[p]?op, a, named, deaths;
        kept = a;
        flag = 0;
        if
        :: op == ACQUIRE -> acquire(p)
        :: op == RELEASE -> release(p)
        :: op == RENEW -> renew(p)
        :: op == CANCEL -> cancel(p)
        fi;
        a = kept;
        if
        :: !pro[p].is_down && !pro[p].is_dead ->
            reply[p]!op, said, a, (said == OWNS -> token : 0), (said == OWNS -> is_unmended : flag);
            if
            :: said == OWNS && !IS_ROBUST -> is_unmended = 0; must_tell = 0
            :: else
            fi
        :: else
        fi;
        skip
    }
}

active proctype server()
{
end:
    do
    :: server_of(0)
    :: server_of(1)
    od
}

/* ---- the line, under the state lock -------------------------------------------------------- */

inline wake(p, t)
{
    line.awake = t + 1;
    if
    :: thread[t].at == SEATED -> thread[t].at = WOKEN
    :: else /* awaits an answer, and comes then */
    fi
}

inline new_claim(p)
{
    line.made++;
    assert(line.made < 8);
    line.attempt = line.made;
    line.claim = ASKS
}

inline sit(p, t)
{
    assert(line.seated < SEATS);
    line.seat[line.seated] = t;
    line.seated++;
    thread[t].x = RECORDS;
    thread[t].at = SEATED
}

inline unseat(p, t)
{
    j = 0;
    do
    :: j < line.seated && line.seat[j] != t -> j++
    :: else -> break
    od;
    if
    :: j < line.seated ->
        line.seated--;
        do
        :: j < line.seated -> line.seat[j] = line.seat[j + 1]; j++
        :: else -> break
        od;
        line.seat[j] = 0
    :: else
    fi;
#ifndef NO_PASS_ON
    line.awake = (line.awake == t + 1 -> 0 : line.awake)
#endif
}

/* The claim no longer owns: the release is wanted, and the first seat asks again. */
inline end_tenure(p, is_death)
{
    line.owed = line.owed | bit(line.attempt);
    line.died = (is_death -> line.died | bit(line.attempt) : line.died & ~bit(line.attempt));
    if
    :: is_death -> count_death(p, line.attempt)
    :: else -> end_between(p, line.attempt)
    fi;
    line.is_starving = 0;
    line.is_wanted = 0;
    line.is_marked = 0;
    line.is_renewal_due = 0;
    line.claim = NONE;
    if
    :: line.seated > 0 -> new_claim(p)
    :: else
    fi
}

inline pool(q, n)
{
    pro[q].record[n].state = POOLED;
    pro[q].record[n].holder = 0;
    pro[q].record[n].is_open = 0;
    pro[q].record[n].has_look = 0;
    pro[q].record[n].is_certain = 0;
    pro[q].record[n].is_late = 0;
    pro[q].record[n].number = 0;
    pro[q].record[n].last = 0;
    pro[q].record[n].attempt = 0;
    pro[q].record[n].token = 0;
    pro[q].record[n].is_owner_dead = 0
}

inline give_back(p, is_death)
{
    pool(p, line.x);
    end_tenure(p, is_death)
}

/* The certainty is over: the record leaves the table, but still belongs to its holder. */
inline lose(p)
{
    h = tenure.holder;
    if
    :: h == 0 -> give_back(p, 0)
    :: else ->
        was = thread[h - 1].at;
#ifdef SILENT_DEATH
        flag = !(was == PASSED || was == AWAITS || was == SETTLES);
#else
        flag = !((was == PASSED || was == AWAITS || was == SETTLES) && !tenure.is_owner_dead);
#endif
        if
        :: was == SWAPPED || was == GOES_OUT || was == SLOW -> reached(3)
        :: else
        fi;
#ifdef ONE_WORD
        tenure.holder = 0;
        tenure.is_open = 0;
#else
        tenure.state = DETACHED;
        tenure.is_open = 0;
        tenure.has_look = 1;
#endif
        end_tenure(p, flag)
    fi
}

/* Each section reads the clock first. */
inline look_at_clock(p)
{
    if
    :: line.claim == OWNS && !tenure.is_certain -> lose(p)
    :: else
    fi
}

inline post_mark(p)
{
    skip;
#ifndef NO_MARK
    line.is_renewal_due = line.is_renewal_due || !line.is_marked;
#endif
    line.is_marked = 1
}

/* dm_line_settle(): at the end of each section. */
inline publish(p)
{
    if
    :: line.claim == OWNS && tenure.holder == 0 ->
        if
#ifndef NO_GIVE_BACK
        :: line.seated == 0 && (line.is_wanted || !IS_LINGERING) -> give_back(p, 0)
#else
        :: line.seated == 0 && !IS_LINGERING -> give_back(p, 0)
#endif
#ifndef SITS_AT_THE_BOUND
        :: line.seated > 0 && !is_below(tenure) -> reached(12); give_back(p, 0)
#endif
#ifndef KEPT_WITHOUT_MARK
        :: line.seated == 0 && !line.is_wanted && IS_LINGERING && !line.is_marked -> reached(14); post_mark(p)
#endif
        :: else
        fi
    :: else
    fi;
    if
    :: line.seated > 0 && line.awake == 0 &&
            ((line.claim == OWNS && tenure.holder == 0 && is_below(tenure)) || (line.claim == ASKS && line.question == 0)) ->
        wake(p, line.seat[0])
    :: else
    fi;
    if
    :: line.claim == OWNS ->
        tenure.is_open = !IS_PASSING && !IS_ROBUST && !line.is_starving && is_below(tenure) &&
            (tenure.holder != 0 || line.awake != 0 || IS_LINGERING);
#ifdef NO_LOOK
        tenure.has_look = 0
#else
        tenure.has_look = line.is_wanted || (line.seated > 0 && line.awake == 0) || (line.seated == 0 && !IS_LINGERING) ||
            !line.is_marked || line.is_starving
#endif
    :: else
    fi
}

/* The word becomes the seat's. */
inline pass(p, t)
{
    new = t;
    unseat(p, new);
    tenure.holder = new + 1;
    line.is_starving = 0;
    line.awake = (line.awake == new + 1 -> 0 : line.awake);
    thread[new].x = line.x;
    begin_between(p, tenure.attempt);
    if
    :: thread[new].at != AWAITS && thread[new].at != SETTLES -> thread[new].at = PASSED
    :: else
    fi
}

/* The server has said that the claim owns, and the proof is still valid. */
inline own(p, tok, told)
{
    line.x = 0;
#ifndef ONE_WORD
    do
    :: line.x < RECORDS && line.record[line.x].state != POOLED -> line.x++
    :: else -> break
    od;
    assert(line.x < RECORDS);
#endif
    tenure.state = USED;
    tenure.is_certain = 1;
    tenure.is_late = 0;
    tenure.number = 0;
#ifdef NO_LIMIT
    tenure.last = 20;
#else
    tenure.last = LIMIT;
#endif
    tenure.attempt = line.attempt;
    tenure.token = tok;
    tenure.is_owner_dead = told;
    line.claim = OWNS;
    line.since = 0;
    if
    :: IS_PASSING && line.seated > 0 -> pass(p, line.seat[0])
    :: else
    fi
}

/* Another attempt waits at the server. */
inline hear_wanted(p)
{
    if
    :: line.claim == OWNS ->
        if
        :: tenure.holder == 0 && line.seated == 0 -> reached(8)
        :: tenure.holder != 0 -> reached(9)
        :: else -> reached(11)
        fi;
        line.is_wanted = 1;
#ifndef NO_BOUND
        tenure.last = (tenure.last > tenure.number + QUOTA -> tenure.number + QUOTA : tenure.last)
#endif
    :: else
    fi
}

/* A thread is inside. */
inline enter(t)
{
    thread[t].at = INSIDE;
    rests = 0;
    begin_between(process_of(t), owner_record.attempt);
    pro[process_of(t)].since = pro[process_of(t)].since + pro[process_of(t)].is_wanted;
    i = 0;
    do
    :: i < THREADS ->
#ifdef EXCLUSION
        assert(i == t || thread[i].at != INSIDE || !pro[process_of(i)].record[thread[i].x].is_certain || pro[process_of(i)].record[thread[i].x].state != USED) /* believes */;
#endif
        i++
    :: else -> break
    od;
#ifdef EXCLUSION
    assert(hold == id_of(process_of(t), owner_record.attempt) && is_held); /* belief and server */
#endif
#ifdef TOKENS
    assert(owner_record.token * WIDTH + owner_record.number > newest);
#endif
    newest = owner_record.token * WIDTH + owner_record.number;
#ifdef BOUND
    assert(pro[process_of(t)].since <= QUOTA);
#endif
    if
    :: IS_ROBUST ->
#ifdef DEATHS
        assert(owner_record.is_owner_dead == must_tell);
#endif
        if
        :: owner_record.is_owner_dead -> owner_record.is_owner_dead = 0; must_tell = 0; is_unmended = 0
        :: else
        fi
    :: else
    fi
}

/* Counts an entry, and enters. */
inline count_and_enter(t)
{
#ifndef NO_COUNT
    owner_record.number++;
#else
    owner_record.number = 1;
#endif
    enter(t)
}

#define is_passed(p, t)                                                                                                \
    (thread[t].x < RECORDS && pro[p].record[thread[t].x].holder == (t) + 1 &&                                          \
     pro[p].record[thread[t].x].state != POOLED)

#define may_take_by_cancel(p) (pro[p].claim == OWNS && pro[p].record[pro[p].x].holder == 0 && is_below(pro[p].record[pro[p].x]))

#define may_take(p)                                                                                                    \
    (pro[p].claim == OWNS && pro[p].record[pro[p].x].holder == 0 && is_below(pro[p].record[pro[p].x]) &&               \
     !(pro[p].seated > 0 && (IS_PASSING || pro[p].is_starving)))

inline slow_lock(p, t)
{
    if
    :: may_take(p) ->
        thread[t].x = line.x;
        tenure.holder = t + 1;
        count_and_enter(t)
    :: else ->
        if
        :: line.claim == OWNS && tenure.holder == 0 && line.seated == 0 -> give_back(p, 0) /* numbers used up, or the bound */
        :: else
        fi;
        if
        :: line.claim == NONE -> new_claim(p)
        :: else
        fi;
#ifdef OPEN_BEFORE_THE_SEAT
        if
        :: line.claim == OWNS && tenure.holder != 0 -> thread[t].x = RECORDS; thread[t].at = SITS
        :: else -> sit(p, t)
        fi
#else
        sit(p, t)
#endif
    fi;
    publish(p)
}

/* The thread leaves a word that it has swapped for nothing. */
inline put_back(t)
{
    if
    :: owner_record.state == USED && owner_record.holder == t + 1 -> owner_record.holder = 0; reached(2)
    :: owner_record.state == DETACHED && owner_record.holder == t + 1 -> pool(process_of(t), thread[t].x)
    :: else
    fi
}

inline go_out(t)
{
    thread[t].rounds--;
    thread[t].x = 0;
    thread[t].at = OUT
}

/* Rule by rule, first match; is_death: the thread ends inside. */
inline slow_unlock(p, t, is_death)
{
    if
    :: owner_record.state != USED || owner_record.holder != t + 1 || !owner_record.is_certain ->
        if
        :: owner_record.state == USED && owner_record.holder == t + 1 ->
            count_death(p, owner_record.attempt);
            pool(process_of(t), thread[t].x);
#ifdef LOST_IS_UNLOCKED
            end_tenure(p, 0)
#else
            end_tenure(p, 1)
#endif
        :: owner_record.state == DETACHED && owner_record.holder == t + 1 -> pool(process_of(t), thread[t].x)
        :: else
        fi
    :: else ->
        if
        :: is_death -> count_death(p, tenure.attempt)
        :: else -> end_between(p, tenure.attempt)
        fi;
        if
        :: !is_below(tenure) || (line.is_wanted && line.seated == 0) ->
            give_back(p, is_death)
        :: else ->
            if
            :: is_death && !(IS_ROBUST && line.seated > 0) -> give_back(p, 1)
            :: (IS_PASSING || line.is_starving) && line.seated > 0 ->
                if
                :: !IS_PASSING -> reached(10)
                :: else
                fi;
#ifndef NO_LOCAL_DEATH
                tenure.is_owner_dead = is_death;
#endif
                if
                :: is_death -> reached(17)
                :: else
                fi;
                pass(p, line.seat[0]);
                post_mark(p)
            :: !(is_death && !(IS_ROBUST && line.seated > 0)) && !((IS_PASSING || line.is_starving) && line.seated > 0) &&
                    (line.seated > 0 || IS_LINGERING) ->
                tenure.holder = 0;
                post_mark(p)
            :: else -> give_back(p, is_death)
            fi
        fi
    fi;
    publish(p)
}

inline ask(p, t)
{
    line.named = line.owed;
    line.posted = line.posted | line.owed;
    pipe[p]!ACQUIRE, line.attempt, line.named, line.died;
    line.question = line.attempt;
    line.asker = t;
    thread[t].at = AWAITS
}

/* The thread of a woken seat checks; starves: it has waited for a millisecond. */
inline come(p, t, starves)
{
    line.awake = (line.awake == t + 1 -> 0 : line.awake);
    look_at_clock(p);
    if
    :: line.claim == OWNS && tenure.holder == 0 && is_below(tenure) ->
        unseat(p, t);
        line.is_starving = 0;
        thread[t].x = line.x;
        tenure.holder = t + 1;
        count_and_enter(t)
    :: line.claim == OWNS && tenure.holder != 0 ->
        line.is_starving = starves && !IS_PASSING;
        if
        :: starves -> reached(4)
        :: else
        fi;
        thread[t].at = SEATED
    :: line.claim == ASKS && line.question == 0 && line.seat[0] == t && may_send(p) ->
        ask(p, t)
    :: else -> thread[t].at = SEATED
    fi;
    publish(p)
}

/* A seat whose deadline has come. */
inline leave_line(p, t)
{
    look_at_clock(p);
    if
    :: line.claim == QUEUED && line.seated == 1 ->
        if
        :: may_send(p) && line.question == 0 ->
            pipe[p]!CANCEL, line.attempt, 0, 0;
            line.question = line.attempt;
            line.asker = t;
            thread[t].at = SETTLES
        :: else
        fi
    :: else ->
        if
        :: line.claim == QUEUED && line.seat[0] == t -> reached(7)
        :: else
        fi;
        if
        :: line.awake == t + 1 -> reached(13)
        :: else
        fi;
        line.is_starving = (line.seat[0] == t -> 0 : line.is_starving);
        unseat(p, t);
        if
        :: line.claim == ASKS && line.seated == 0 -> line.owed = line.owed | bit(line.attempt); line.claim = NONE
        :: else
        fi;
        go_out(t)
    fi;
#ifdef LAST_SEAT_LEAVES_THE_LEASE
    if
    :: line.seated == 0 && line.claim == OWNS
    :: else -> publish(p)
    fi
#else
    publish(p)
#endif
}

/* A thread that has swapped and not entered is no longer inside. */
inline end_between_of(p, t)
{
    if
    :: owner_record.state == USED && owner_record.holder == t + 1 -> end_between(p, owner_record.attempt)
    :: else
    fi
}

/* The deadline comes while the connection is down: the question may have been executed, or not. */
inline give_up_question(p, t)
{
    reached(16);
    look_at_clock(p);
    line.posted = line.posted & ~line.named;
    line.named = 0;
    line.again = 0;
    a = line.question;
    line.question = 0;
    if
    :: is_passed(p, t) -> thread[t].at = PASSED
    :: else ->
        unseat(p, t);
        if
        :: (line.claim == ASKS || line.claim == QUEUED) && line.attempt == a ->
            line.owed = line.owed | bit(a);
            line.claim = NONE;
            if
            :: line.seated > 0 -> new_claim(p)
            :: else
            fi
        :: line.claim == ASKS && line.attempt != a && line.seated == 0 -> line.claim = NONE
        :: else
        fi;
        go_out(t)
    fi;
    publish(p)
}

/* ---- a thread ------------------------------------------------------------------------------ */

#define is_alive(t) (thread[t].at != ENDED)
#define word_is_mine(t) (owner_record.holder == (t) + 1 && owner_record.is_open && !owner_record.has_look)

proctype runs(byte t; byte p)
{
end:
    do
    :: d_step { thread[t].at == OUT && thread[t].rounds > 0 ->
        if
        :: !IS_ROBUST && line.claim == OWNS -> thread[t].x = line.x; thread[t].at = LOADED
        :: else -> thread[t].at = SLOW; thread[t].x = RECORDS
        fi }
    :: d_step { thread[t].at == LOADED ->
        if
        :: owner_record.holder == 0 && owner_record.is_open ->
            owner_record.holder = t + 1;
#ifndef SWAPPED_IS_OUTSIDE
            begin_between(p, owner_record.attempt);
#endif
            thread[t].at = SWAPPED
        :: else -> thread[t].at = SLOW; thread[t].x = RECORDS
        fi }
    :: d_step { thread[t].at == SWAPPED ->
        if
#ifdef NO_CLOCK
        :: owner_record.number < owner_record.last -> reached(1); count_and_enter(t)
#else
        :: owner_record.number < owner_record.last && owner_record.is_certain && !owner_record.is_late ->
            reached(1);
            count_and_enter(t)
#endif
        :: else -> thread[t].at = GOES_OUT
        fi }
    :: d_step { thread[t].at == GOES_OUT ->
        if
        :: word_is_mine(t) ->
            reached(19);
            end_between(p, owner_record.attempt);
            owner_record.holder = 0;
            thread[t].x = RECORDS
        :: else
        fi;
        thread[t].at = SLOW }
    :: d_step { thread[t].at == SLOW ->
        if
        :: thread[t].x < RECORDS -> end_between_of(p, t); put_back(t)
        :: else
        fi;
        look_at_clock(p);
        slow_lock(p, t) }
#ifdef OPEN_BEFORE_THE_SEAT
    :: d_step { thread[t].at == SITS ->
        sit(p, t);
        if
        :: line.claim == OWNS -> tenure.has_look = 1
        :: else
        fi }
#endif
    :: d_step { thread[t].at == WOKEN && (line.claim != ASKS || line.question != 0 || line.seat[0] != t || may_send(p)) -> come(p, t, 0) }
#ifndef ROBUST
    :: d_step { thread[t].at == WOKEN && line.claim == OWNS && tenure.is_certain && tenure.holder != 0 && !line.is_starving -> come(p, t, 1) }
#endif
    :: d_step { thread[t].at == PASSED ->
        if
        :: owner_record.state == USED && owner_record.is_certain -> count_and_enter(t); publish(p)
        :: else ->
            look_at_clock(p);
            if
            :: owner_record.state == DETACHED && owner_record.holder == t + 1 -> pool(process_of(t), thread[t].x)
            :: else
            fi;
            slow_lock(p, t)
        fi }
    :: d_step { thread[t].at == INSIDE ->
        if
        :: word_is_mine(t) && owner_record.is_certain && !owner_record.is_late -> thread[t].at = LEAVES
        :: else -> thread[t].at = LEAVES_SLOWLY
        fi }
    :: d_step { thread[t].at == LEAVES ->
        if
        :: word_is_mine(t) ->
            reached(5);
            end_between(p, owner_record.attempt);
            owner_record.holder = 0;
            go_out(t)
        :: else -> thread[t].at = LEAVES_SLOWLY
        fi }
    :: d_step { thread[t].at == LEAVES_SLOWLY -> slow_unlock(p, t, 0); go_out(t) }
    /* faults */
    :: d_step { thread[t].at == INSIDE && ends > 0 && !line.is_dead ->
        ends--;
        slow_unlock(p, t, 1);
        thread[t].x = 0;
        thread[t].at = ENDED }
    :: d_step { timeouts > 0 && (thread[t].at == SEATED || thread[t].at == WOKEN) &&
            !(line.claim == QUEUED && line.seated == 1 && !(may_send(p) && line.question == 0)) ->
        timeouts--;
        leave_line(p, t) }
    :: d_step { timeouts > 0 && thread[t].at == AWAITS && line.is_down -> timeouts--; give_up_question(p, t) }
    :: d_step { timeouts > 0 && thread[t].at == PASSED -> timeouts--; reached(6) }
    od
}

/* ---- the loop thread, and arrivals --------------------------------------------------------- */

/* The proof of a grant is still valid: no other hold can have begun. */
#define proves(p, n, tok) (hold == id_of(p, n) && is_held && token == (tok))

/* A grant: by message or by answer. */
inline take_grant(p, n, tok, told)
{
    if
    :: n == line.attempt && (line.claim == ASKS || line.claim == QUEUED) ->
        if
        :: proves(p, n, tok) -> own(p, tok, told)
        :: else -> reached(18); line.claim = ASKS
        fi
    :: else
    fi
}

/* The answer to the last seat's cancel: it owns, or the claim is over. */
inline settled(p)
{
    if
    :: said == OWNS -> take_grant(p, a, m, is_grant)
    :: said == LEFT && a == line.attempt && (line.claim == QUEUED || line.claim == ASKS) ->
        line.claim = NONE;
        if
        :: line.seated > 1 -> new_claim(p)
        :: else
        fi
    :: else
    fi;
    if
    :: is_passed(p, id) -> thread[id].at = PASSED
    :: else ->
        if
        :: may_take_by_cancel(p) -> reached(15); pass(p, id); thread[id].at = PASSED
        :: else ->
            unseat(p, id);
            if
            :: line.claim == ASKS && line.seated == 0 -> line.owed = line.owed | bit(line.attempt); line.claim = NONE
            :: else
            fi;
            go_out(id)
        fi
    fi
}

inline take_reply(p)
{
    reply[p]?op, said, a, new, is_grant;
    m = new;
    if
    :: op == RELEASE ->
        line.owed = line.owed & ~bit(a);
        line.posted = line.posted & ~bit(a);
        line.died = line.died & ~bit(a)
    :: op == RENEW ->
#ifdef RENEWAL_LIFTS_BOUND
        if
        :: said == DONE_SO && a == line.attempt && line.claim == OWNS -> tenure.is_late = 0
        :: else
        fi;
#endif
        if
        :: said == DONE_SO && is_grant && a == line.attempt -> look_at_clock(p); hear_wanted(p)
        :: else
        fi
    :: else ->
        id = line.asker;
        line.question = 0;
        line.owed = line.owed & ~line.named;
        line.posted = line.posted & ~line.named;
        line.died = line.died & ~line.named;
        line.named = 0;
#ifndef ANSWER_BEFORE_CLOCK
        look_at_clock(p);
#endif
        if
        :: op == ACQUIRE ->
            if
#ifdef ANSWER_BEFORE_CLOCK
            :: said == OWNS && line.claim == OWNS && a == line.attempt && proves(p, a, m) -> tenure.is_certain = 1
#endif
            :: said == OWNS && !(IS_ANSWER_FIRST && line.claim == OWNS) -> take_grant(p, a, m, is_grant)
            :: said == QUEUED && a == line.attempt && line.claim == ASKS -> line.claim = QUEUED
            :: else
            fi;
            thread[id].at = (is_passed(p, id) -> PASSED : SEATED)
        :: else -> settled(p)
        fi;
        if
        :: thread[id].at == SEATED && line.awake == id + 1 -> thread[id].at = WOKEN
        :: else
        fi
    fi;
    publish(p)
}

inline take_message(p)
{
    inbox[p]?op, a, m, is_grant;
    look_at_clock(p);
    if
    :: op == GRANTED -> take_grant(p, a, m, is_grant)
    :: op == WANTED && a == line.attempt -> hear_wanted(p)
    :: else
    fi;
    publish(p)
}

inline break_connection(p)
{
    line.is_down = 1;
    line.posted = 0;
    do
    :: len(reply[p]) > 0 -> reply[p]?_, _, _, _, _
    :: else -> break
    od;
    line.again = line.question;
#ifdef TWO_QUESTIONS
    if
    :: line.question != 0 -> line.question = 0; thread[line.asker].at = (is_passed(p, line.asker) -> PASSED : SEATED); publish(p)
    :: else
    fi
#endif
    skip
}

inline reconnect(p)
{
    do
    :: len(pipe[p]) > 0 -> pipe[p]?_, _, _, _
    :: else -> break
    od;
    line.is_down = 0;
    line.is_renewal_due = line.claim == OWNS && line.is_marked
}

/* A release waits for the answer to the question of its attempt. */
#define may_release(p, n) ((pro[p].owed & ~pro[p].posted & bit(n)) && pro[p].question != (n))

proctype loop(byte p)
{
end:
    do
    :: d_step { !line.is_dead && len(reply[p]) > 0 -> take_reply(p); skip }
    :: d_step { !line.is_dead && len(inbox[p]) > 0 -> take_message(p); skip }
    :: d_step { losses > 0 && len(inbox[p]) > 0 -> losses--; inbox[p]?_, _, _, _ }
    :: d_step { !line.is_dead && line.claim == OWNS && !tenure.is_certain -> lose(p); publish(p) }
    :: d_step { line.is_renewal_due && may_send(p) ->
        line.is_renewal_due = 0;
        pipe[p]!RENEW, line.attempt, 0, 0 }
    :: d_step { line.again != 0 && may_send(p) ->
        pipe[p]!(thread[line.asker].at == SETTLES -> CANCEL : ACQUIRE), line.again, line.named, line.died;
        line.again = 0 }
    :: d_step { (line.owed & ~line.posted & ~bit(line.question)) && may_send(p) ->
        i = 1;
        do
        :: may_release(p, i) -> break
        :: else -> i++
        od;
        line.posted = line.posted | bit(i);
        pipe[p]!RELEASE, i, 0, (line.died & bit(i)) }
    :: d_step { line.is_down && !line.is_dead -> reconnect(p); skip }
    :: d_step { lingers > 0 && !line.is_dead && line.claim == OWNS && tenure.holder == 0 && line.seated == 0 ->
        lingers--;
        look_at_clock(p);
        if
        :: line.claim == OWNS -> give_back(p, 0)
        :: else
        fi }
    od
}

/* ---- faults and time ----------------------------------------------------------------------- */

inline end_threads(p)
{
    i = 0;
    do
    :: i < THREADS ->
        if
        :: process_of(i) == p -> thread[i].at = ENDED
        :: else
        fi;
        i++
    :: else -> break
    od
}

inline kill(p)
{
    line.is_dead = 1;
    if
    :: hold != 0 && client_of(hold) == p && (between[p] & bit(attempt_of(hold))) && IS_ROBUST &&
            !(line.posted & bit(attempt_of(hold))) ->
        count_death(p, attempt_of(hold))
    :: else
    fi;
    end_threads(p);
    line.is_renewal_due = 0;
    line.again = 0;
    line.owed = 0;
    line.question = 0;
    do
    :: len(inbox[p]) > 0 -> inbox[p]?_, _, _, _
    :: len(reply[p]) > 0 -> reply[p]?_, _, _, _, _
    :: else -> break
    od
}

/* A seat has the word, and its thread has not run yet. */
#define is_handed(p)                                                                                                   \
    (pro[p].record[pro[p].x].holder != 0 && (thread[pro[p].record[pro[p].x].holder - 1].at == PASSED ||                \
                                             thread[pro[p].record[pro[p].x].holder - 1].at == AWAITS ||                \
                                             thread[pro[p].record[pro[p].x].holder - 1].at == SETTLES))
/* The server's hold: is it certain in the process, or released? */
#define is_believed(p, n) (pro[p].claim == OWNS && pro[p].attempt == (n) && pro[p].record[pro[p].x].is_certain)
#ifdef DEATHS /* posted releases and marks arrive before the server's lease ends */
#define has_arrived(p) (len(pipe[p]) == 0 && !pro[p].is_renewal_due)
#else
#define has_arrived(p) true
#endif
#define is_returned(p, n) ((pro[p].owed & bit(n)) != 0)

inline faults_of(p)
{
    if
    /* after the posts, which are in the kernel */
    :: d_step { kills > 0 && !line.is_dead && !(line.owed & ~line.posted) && !line.is_renewal_due -> kills--; kill(p); skip }
    :: d_step { breaks > 0 && !line.is_dead && !line.is_down -> breaks--; break_connection(p); skip }
    :: d_step { lapses > 0 && line.claim == OWNS && tenure.is_certain && !line.is_dead -> lapses--; tenure.is_certain = 0 }
    :: d_step { times > 0 && line.claim == OWNS && line.is_wanted && !tenure.is_late -> times--; tenure.is_late = 1; line.since = QUOTA - is_handed(p) }
    /* the server's lease: of a lost hold, or of a grant in transit */
    :: d_step { hold != 0 && is_held && client_of(hold) == p && !line.is_dead && !is_returned(p, attempt_of(hold)) &&
            !is_believed(p, attempt_of(hold)) && (line.claim == OWNS || lapses > 0) && has_arrived(p) ->
        lapses = (line.claim == OWNS -> lapses : lapses - 1);
        is_held = 0 }
    fi
}

proctype faults()
{
end:
    do
    :: faults_of(0)
    :: faults_of(1)
    :: d_step { lapses + kills + ends + timeouts + losses + breaks + times + lingers > 0 ->
        lapses = 0;
        kills = 0;
        ends = 0;
        timeouts = 0;
        losses = 0;
        breaks = 0;
        times = 0;
        lingers = 0 }
    od
}

#define is_through(t) (thread[t].at == ENDED || (thread[t].at == OUT && thread[t].rounds == 0))
#define ALL_THROUGH (is_through(0) && is_through(1) && is_through(2) && is_through(3))

/* Polls and renewals, and the end of a dead process's lease. */
inline pass_time()
{
    if
    :: hold != 0 && pro[client_of(hold)].is_dead -> is_held = 0
    :: else
    fi;
    if
    :: waiting > 0 -> note_death()
    :: else
    fi;
    if
    :: waiting > 0 && !is_held -> serve(0)
    :: else
    fi;
    poll(0);
    poll(1)
}

/* A renewal, or the poll of a waiter: its grant was lost, or the server does not know the waiter. */
inline poll(p)
{
    find(id_of(p, line.attempt));
    if
    :: line.is_dead || line.is_down
    :: !line.is_dead && !line.is_down && hold != 0 && hold == id_of(p, line.attempt) ->
        is_held = 1;
        if
        :: line.claim == OWNS && waiting > 0 -> hear_wanted(p)
        :: line.claim == QUEUED -> take_grant(p, line.attempt, token, is_unmended)
        :: else
        fi;
        publish(p)
    :: !line.is_dead && !line.is_down && hold != id_of(p, line.attempt) && line.claim == QUEUED && m == waiting ->
        new_claim(p);
        publish(p)
    :: else
    fi
}

proctype clock()
{
end:
    do
    :: timeout -> d_step {
        if
        :: ALL_THROUGH ->
#ifdef REST
            assert(IS_LINGERING || hold == 0 || pro[client_of(hold)].is_dead) /* idle */;
#endif
            rests = RESTS + 2
        :: else ->
#ifdef REST
            assert(rests < RESTS); /* waits */
#endif
            if
            :: rests < RESTS -> rests++; pass_time()
            :: else
            fi
        fi }
    od
}

init
{
    atomic {
        thread[0].rounds = R0;
        thread[1].rounds = R1;
        thread[2].rounds = R2;
        thread[3].rounds = R3;
        run runs(0, process_of(0));
        run runs(1, process_of(1));
        run runs(2, process_of(2));
        run runs(3, process_of(3));
        run loop(0);
        run loop(1);
        run faults();
        run clock();
    }
}
