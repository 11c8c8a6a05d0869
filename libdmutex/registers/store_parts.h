/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parts of the store on registers:
 *
 *   store.c     the wall: questions come in
 *   turns.c     threads that wait
 *   client.c    what the driver calls
 *   engine.c    one turn: what follows from replies, and what is delivered afterwards
 *   names.c     the names that this process uses: attempts, and tasks about them
 *   tasks.c     tasks go on: read, step, swap
 *   steps.c     one step of a task, and its swap
 *   notes.c     a holder is told before its hold is broken
 *   settle.c    what follows from a step
 *   questions.c questions become tasks
 *   conditions.c the bindings of conditions, and who sleeps on one
 *   news.c      what the process hears without asking
 *   sessions.c  the sessions of this process, those that it watches, and the mark
 *   requests.c  requests to the driver
 *   look.c      reads outside the protocol: any keys at once, and lists of keys
 *   view.c      names and their data, for people
 *   sweep.c     what nobody needs any more goes from the store
 *   rest.c      an idle process closes its connection
 *   outbox.c    answers and messages, until they are delivered
 *
 * Everything is guarded by the store's lock, and the driver is called under it.  Handlers and the host are called
 * without it, in dm_registers_deliver().
 */
#ifndef DM_REGISTERS_STORE_PARTS_H
#define DM_REGISTERS_STORE_PARTS_H

#include "base/rank.h"
#include "base/units.h"
#include "registers/apply.h"
#include "registers/errand.h"
#include "registers/mark.h"
#include "registers/session.h"
#include "registers/store.h"
#include "registers/sweep.h"
#include "registers/watch.h"

#define DM_REG_BUCKETS 256

/* A store that refuses is asked again after this time. */
#define DM_REG_REFUSED_NS (500 * DM_NS_PER_MS)

struct dm_reg_name;
struct dm_registers;

/* Questions that were submitted together, until the last one has its answer. */
struct dm_reg_batch {
    struct dm_reg_batch *next; /* of those to be delivered */
    dm_answers_fn done;
    void *user;
    int count, left; /* answers that are still to come */
    bool is_unanswered;
    char refusal[DM_REASON_ROOM]; /* "" none */
    struct dm_answer answers[];
};

/* A place of this store: the key of its name there. */
struct dm_place {
    uint32_t spread;
    char key[]; /* with its end */
};

/* A message for the process. */
struct dm_reg_news_item {
    struct dm_reg_news_item *next;
    struct dm_message message;
};

/* A session of this process. */
struct dm_reg_own {
    struct dm_reg_own *next;
    struct dm_reg_session session;
    unsigned attempts; /* that refer to it, or may */
    bool is_over;
    bool is_told;    /* the attempts know that it is over */
    int64_t told_ns; /* proved_ns and phase, as the renewals know them */
    enum dm_reg_session_phase told_phase;
};

/* An attempt that is not over, as far as this process knows. */
struct dm_reg_attempt {
    struct dm_reg_attempt *next;   /* of the name */
    struct dm_reg_attempt *in_row; /* in its bucket */
    struct dm_reg_name *name;
    uint64_t number, thread;
    uint32_t lease_ms;
    bool is_robust;
    struct dm_reg_own *own;        /* the session that the value names, or will; NULL: none yet */
    bool is_sent;                  /* a swap that names it was sent: it is a reference to the session */
    bool is_hold;                  /* OWNED was answered, and no release has been asked for */
    bool is_waiting;               /* QUEUED was answered */
    bool is_asleep;                /* WAITING was answered */
    bool is_ending;                /* its release is asked for */
    bool may_have_left;            /* a wait whose swap had no answer gives the hold back, perhaps */
    bool is_broken;                /* by force, as somebody said: no grant is believed any more */
    struct dm_reg_name *condition; /* on which it sleeps, or has slept; NULL: none */
    struct dm_reg_version bound;   /* C5: of the binding when it fell asleep */
    struct dm_reg_task *finding;   /* the task about it that is still among those of the condition */
    uint64_t token;
    enum dm_mark mark; /* as the value has it */
    struct dm_reg_looks looks;
    int64_t poll_ns;  /* waiting, without notices: when the store looks for itself */
    int64_t heard_ns; /* the process's last question about it, or our last answer */
};

/*
 * A note in the session of a holder that is to be broken: its owner learns of it at its next beat.  The note comes
 * first, so nobody is broken without being told.
 */
struct dm_reg_note {
    struct dm_reg_ref ref; /* the holder */
    bool is_done;          /* noted, or there is nobody to be told */
    bool must_swap;        /* `value` is to be written */
    int64_t retry_ns;
    struct dm_reg_session_value value; /* as read, with the attempt among the broken ones */
};

/*
 * Tasks without an enum dm_reg_act: SLEEPERS counts who sleeps on the condition.  Those of a condition: FIND reads the
 * binding, and goes on at the mutex; BIND binds it first; UNBIND deletes the binding.
 */
#define DM_REG_ACT_SLEEPERS DM_REG_ACT_COUNT
#define DM_REG_ACT_FIND ((enum dm_reg_act)(DM_REG_ACT_COUNT + 1))
#define DM_REG_ACT_BIND ((enum dm_reg_act)(DM_REG_ACT_COUNT + 2))
#define DM_REG_ACT_UNBIND ((enum dm_reg_act)(DM_REG_ACT_COUNT + 3))

/*
 * BIND.  C5: the condition is bound to another mutex only while nobody sleeps at the former one; that is looked at
 * again after the swap, which is undone if somebody has come meanwhile.
 */
struct dm_reg_bind {
    char mutex[DM_MUTEX_KEY_ROOM];   /* the new one, as the process calls it */
    char former[DM_REG_KEY_MAX + 1]; /* "": none */
    struct dm_reg_version counted;   /* the binding when the sleepers of the former mutex were counted */
    struct dm_reg_version ours;      /* the binding as we wrote it */
    struct dm_reg_task *counting;    /* counts at the former mutex */
    unsigned sleepers;               /* as it found */
    bool is_recounted, is_undone;
};

/* One operation on one name. */
struct dm_reg_task {
    struct dm_reg_task *next; /* of the name, in the order of asking */
    struct dm_reg_errand errand;
    struct dm_reg_name *name;
    enum dm_reg_act act;
    struct dm_reg_attempt *attempt; /* NULL: none */
    struct dm_reg_batch *batch;     /* NULL: nobody waits for the answer */
    int index;                      /* in the batch */
    enum dm_end end;
    int64_t held_ms; /* RELEASE: how long the hold lasted, for people; 0: not told */
    enum dm_mark mark;
    uint64_t seen, arrival;
    int64_t look_ns;  /* TRY: since when it looks at the holders; 0: not yet */
    int64_t asked_ns; /* MARK: the answer must prove a later beat */
    bool is_awaited;  /* MARK: a thread sleeps until the answer */
    bool is_anonymous;
    bool is_over;                  /* by the answer, so is the attempt */
    bool is_unanswered;            /* one of its swaps had no answer; RELEASE: or a claim that it took the place of */
    bool is_dropped;               /* its request is under way, and nothing follows it */
    bool is_claiming;              /* CLAIM: sent, so the value may name the new session */
    struct dm_reg_own *claimer;    /* CLAIM: the new session */
    enum dm_verdict refusal;       /* by the store, of the last request; NOTHING: none */
    struct dm_reg_note *note;      /* FORCE: once there is a holder */
    enum dm_reg_act then;          /* FIND: the act at the mutex */
    uint64_t leaving;              /* WAIT: the attempt whose hold is given back */
    struct dm_reg_name *condition; /* WAIT, SIGNAL, SLEEPERS */
    struct dm_reg_bind *bind;      /* BIND */
    struct dm_reg_task *binder;    /* SLEEPERS: the BIND that wants to know; NULL: the batch */
    int64_t began_ns;              /* SLEEPERS */
    int most;                      /* SIGNAL */
    uint64_t upto, told_upto;      /* SIGNAL: whom it is for, and whom the answer names */
    bool is_riding;                /* the read under way is for it, too */
    struct dm_answer answer;
    union dm_more *ret_more;
    int owed_count;
    struct dm_reg_owed owed[]; /* ACQUIRE */
};

/* A renewal that waits for the next beat of its session. */
struct dm_reg_renewal {
    struct dm_reg_renewal *next;
    uint64_t attempt;
    int64_t asked_ns;
    bool is_awaited; /* by a thread, which is not content with what was known before */
    bool has_waiter;
    struct dm_reg_batch *batch;
    int index;
};

/*
 * A name that this process uses, with the copy of its value that this process knows.  A condition is one, too: its
 * value is the binding, and the sleepers are in the value of the mutex.
 */
struct dm_reg_name {
    struct dm_reg_name *next;   /* in its bucket */
    struct dm_reg_name *in_row; /* of the names with tasks */
    bool is_in_row;
    struct dm_reg_copy copy;
    struct dm_reg_version version;
    uint8_t *value;
    size_t size;
    struct dm_reg_task *under_way; /* whose request is under way */
    struct dm_reg_version next_version;
    uint8_t *next_value; /* of the swap under way */
    size_t next_size;
    struct dm_reg_notice *own_notices; /* of the swap under way, to this process; NULL: none */
    int own_notice_count;
    unsigned uses;         /* by attempts and tasks about other names */
    uint64_t reads_wanted; /* in doubt: believed once the mark has been read so often */
    struct dm_reg_task *tasks, **last_task;
    struct dm_reg_attempt *attempts;
    char key[]; /* with its end */
};

/* More notices of one swap to its own process are found by polls. */
#define DM_REG_OWN_NOTICES 8

/* Reads of keys that nobody in this process uses, for people and for the sweep. */
struct dm_reg_look {
    struct dm_self *asker; /* woken when the last answer has come; NULL: nobody sleeps for it */
    bool is_left;          /* the asker has gone, so the last answer frees it */
    bool has_failed, is_refused;
    char reason[DM_REASON_ROOM];
    char (*keys)[DM_REG_KEY_MAX + 1]; /* of a list */
    int key_count;
    bool is_last;
    int count, left;
    struct dm_reg_looked {
        bool is_read;
        uint8_t *value; /* size 0: absent */
        size_t size;
        int64_t age_ms; /* -1: not known */
    } items[];
};

enum dm_reg_asked {
    DM_REG_ASKED_NAME,
    DM_REG_ASKED_OWN,
    DM_REG_ASKED_WATCHED,
    DM_REG_ASKED_MARK,
    DM_REG_ASKED_NOTE,
    DM_REG_ASKED_LOOK,
    DM_REG_ASKED_SWEEP /* a swap of the sweep; its outcome does not matter */
};

#define DM_REG_NOTICES 64
#define DM_REG_NOTICE_ROOM 64

/* Room for a notice on its way out. */
struct dm_reg_tell_room {
    char inbox[DM_UUID_LENGTH + 1];
    char text[DM_REG_NOTICE_ROOM];
};

/* A thread that waits for the store. */
struct dm_reg_sleeper {
    struct dm_reg_sleeper *next;
    struct dm_self *self;
    bool may_lead;
};

/* A request to the driver that has no answer yet. */
struct dm_reg_request {
    struct dm_reg_request *next;
    uint64_t ticket;
    int index; /* among the items of the ticket */
    enum dm_reg_asked asked;
    bool is_swap;
    bool has_failed; /* not sent after all */
    int64_t sent_ns;
    struct dm_reg_version next_version; /* of a session's swap */
    struct dm_reg_name *name;
    struct dm_reg_own *own;
    struct dm_reg_session_id watched;
    struct dm_reg_look *look;
    int item; /* of the look */
};

enum dm_reg_sweep_phase {
    DM_REG_SWEEP_PAUSES,
    DM_REG_SWEEP_LISTS,
    DM_REG_SWEEP_READS,
    DM_REG_SWEEP_READS_MUTEXES /* of old bindings */
};

#define DM_REG_SWEEP_KEYS 50 /* that are listed, and then read, at once */

struct dm_reg_sweep {
    enum dm_reg_sweep_phase phase;
    int64_t due_ns; /* PAUSES: when it begins or goes on; 0: not planned yet */
    bool is_under_way;
    int kind;         /* of keys: sessions come first */
    bool has_wrapped; /* from the first key on, up to where it began */
    bool is_last;     /* READS: the last keys before that, or before the end */
    int session_count;
    char start[8]; /* anywhere in the middle */
    char after[DM_REG_KEY_MAX + 1];
    struct dm_reg_look *look;
    char keys[DM_REG_SWEEP_KEYS][DM_REG_KEY_MAX + 1];
    struct dm_reg_version versions[DM_REG_SWEEP_KEYS]; /* READS_MUTEXES: of the bindings */
    struct dm_reg_sweep_seen seen;
};

/* Reads go to the driver together, when all that is due in a turn is known. */
#define DM_REG_READS_MOST 64

struct dm_reg_read {
    struct dm_reg_request *request;
    struct dm_reg_version version;
    bool reserves;
    char key[DM_REG_KEY_MAX + 1];
};

struct dm_registers {
    struct dm_store store; /* first */
    struct dm_mutex lock;
    struct dm_reg_driver *driver;
    const struct dm_ident *ident;
    struct dm_host host;
    struct dm_reg_writer writer;
    uint8_t uuid[DM_UUID_LENGTH / 2];

    bool is_connected;
    bool is_ready;      /* connected, and the mark is known */
    bool is_inbox_open; /* as the driver says; always true without notices */
    int64_t ready_ns;   /* since when, without a pause of ours */
    int64_t ran_ns;     /* the last turn */
    bool is_final;      /* waiting is useless */
    bool is_ended;
    bool is_closing; /* sessions without references end */
    int drains;      /* threads that wait for the end of releases or sessions */
    int owed;        /* what they have last been told */
    bool is_idle;    /* the same, before the connection closes */
    bool is_needed;  /* by claims of the process, as the loop thread has last heard */
    bool is_resting; /* the connection was closed because nobody needed it */
    int64_t used_ns; /* when somebody last asked for anything */
    bool is_settled; /* closing: no swap of ours may come late */
    bool has_dead;   /* a session of others is newly known to be dead */
    char identity[DM_REG_IDENTITY_ROOM];
    uint64_t identity_number;
    char down_reason[DM_REASON_ROOM];
    struct dm_traffic traffic;

    uint32_t last_serial; /* of sessions */
    int64_t make_ns;      /* no session is made before */
    struct dm_reg_own *owns;
    struct dm_reg_watch watch;
    struct dm_reg_mark_watch mark;
    struct dm_reg_name *buckets[DM_REG_BUCKETS];
    struct dm_reg_attempt *attempts[DM_REG_BUCKETS];
    unsigned name_count;
    struct dm_reg_name *busy; /* names with tasks */
    struct dm_reg_renewal *renewals;
    bool has_claimed; /* a hold, since the renewals were last looked at */
    int64_t sweep_ns; /* when an attempt may have been forgotten by the process */
    struct dm_reg_sweep sweep;

    struct dm_reg_request *requests, **last_request;
    uint64_t last_ticket;
    struct dm_reg_read reads[DM_REG_READS_MOST]; /* not sent yet */
    struct dm_reg_item read_items[DM_REG_READS_MOST];
    int read_count;
    bool has_failed;            /* requests that have, too */
    int64_t clock_us, clock_ns; /* the store's clock, and ours when it told; 0: it does not */
    int64_t round_trip_ns;
    uint64_t chance;
    struct dm_reg_notice notices[DM_REG_NOTICES]; /* of the step under way */
    struct dm_reg_tell_room tells[DM_REG_NOTICES];
    struct dm_reg_tell tell_items[DM_REG_NOTICES];
    struct dm_reg_session_value session; /* too large for a stack, as the next */
    uint8_t bytes[DM_REG_SMALL_MAX];     /* of a session or the mark, on its way out */

    /* To be delivered without the lock. */
    struct dm_reg_batch *batches, **last_batch;
    struct dm_reg_news_item *news, **last_news;
    bool tells_ready, tells_inbox, tells_change;

    int64_t due_ns;      /* the next turn, as the last one found it; see dm_registers_due_ns() */
    int64_t loop_due_ns; /* as the loop thread knows it */
    bool has_moved;      /* a task has gone on to another name */
    struct dm_reg_sleeper *sleepers;
    struct dm_reg_sleeper *called;      /* one of them who is on the way to lead; NULL: none */
    bool has_leader, is_left_to_leader; /* turns.c */
    int64_t led_ns;
    struct dm_watch led;        /* what the leader waits for */
    struct dm_watch probe;      /* what there is to wait for now */
    uint64_t led_sum, loop_sum; /* of the descriptors, as the leader and the loop thread know them */
    int bell;
};

static inline struct dm_registers *dm_registers_of(struct dm_store *store)
{
    return (struct dm_registers *)(void *)store;
}

/* ---- outbox.c ---------------------------------------------------------------------------- */

/* One answer of a batch; the last one makes the batch due. */
void dm_registers_answer(struct dm_registers *registers, struct dm_reg_batch *batch, int index,
                         const struct dm_answer *answer, const char *refusal);

/* The batch gets no answers. */
void dm_registers_leave_unanswered(struct dm_registers *registers, struct dm_reg_batch *batch);

/* A message for the process about an attempt. */
void dm_registers_tell(struct dm_registers *registers, const struct dm_message *message);

/* Something has happened that sleeping threads must see.  Lock held. */
void dm_registers_wake_all(struct dm_registers *registers);

/* ---- engine.c ---------------------------------------------------------------------------- */

/* Calls handlers and the host; the lock is not held. */
void dm_registers_deliver(struct dm_registers *registers);

/* The driver's turn, and what follows from it.  Quietly. */
void dm_registers_work(struct dm_registers *registers);

/* Sends whatever can be sent now, and plans the next turn.  Quietly. */
void dm_registers_run(struct dm_registers *registers);
/* False for a thread whose stack is too small for the driver: the loop thread works for it. */
bool dm_registers_may_work(const struct dm_registers *registers);

/* True if there is something to deliver. */
bool dm_registers_has_news(const struct dm_registers *registers);

/* When something is to be done, by itself: 0 if there is something to deliver. */
int64_t dm_registers_due_ns(const struct dm_registers *registers);

/*
 * Finds what there is to wait for now: registers->probe.  Returns a number made of it, as dm_registers_sum() does of
 * any watch.
 */
uint64_t dm_registers_probe(struct dm_registers *registers);
uint64_t dm_registers_sum(const struct dm_watch *watch);

/* True if the loop thread waits for other things than there are; a leader that does is woken. */
bool dm_registers_has_changed(struct dm_registers *registers);

/* An ended store closes its bell here, or when the leader leaves. */
void dm_registers_close_bell(struct dm_registers *registers);

/* ---- names.c ----------------------------------------------------------------------------- */

/* NULL without memory. */
struct dm_reg_name *dm_registers_name(struct dm_registers *registers, const char *key);
struct dm_reg_attempt *dm_registers_attempt(const struct dm_registers *registers, uint64_t number);

struct dm_reg_attempt *dm_reg_attempt_make(struct dm_registers *registers, struct dm_reg_name *name,
                                           const struct dm_question *question);

/* From now on the attempt is in this session, not in its former one. */
void dm_reg_attempt_join(struct dm_reg_attempt *attempt, struct dm_reg_own *own);

/* From now on a value may name it. */
void dm_reg_attempt_note_sent(struct dm_reg_attempt *attempt);
void dm_reg_attempt_note_hold(struct dm_reg_attempt *attempt, uint64_t token);
void dm_reg_attempt_note_no_hold(struct dm_reg_attempt *attempt);

/* True if the session of the attempt is not what the value's data may still have: nothing is owed to it (D3). */
bool dm_reg_attempt_is_gone(const struct dm_reg_attempt *attempt);
bool dm_reg_attempt_is_certain(const struct dm_reg_attempt *attempt);
struct dm_reg_ref dm_reg_attempt_ref(const struct dm_reg_attempt *attempt);

/* A release that is asked for already, or NULL. */
struct dm_reg_task *dm_reg_attempt_find_release(const struct dm_reg_attempt *attempt);

/* D4: the task that puts its hold into the new data, or NULL. */
struct dm_reg_task *dm_reg_attempt_find_claim(const struct dm_reg_attempt *attempt);

/* From now on it is the store's business to release the attempt, whether or not somebody asks for it again (N5). */
void dm_reg_attempt_owe(struct dm_registers *registers, struct dm_reg_attempt *attempt, enum dm_end end);

/* Whatever was asked about the attempt before is of no use any more. */
void dm_reg_attempt_supersede(struct dm_registers *registers, struct dm_reg_attempt *attempt);

/* The attempt is over, and freed.  Another task about it, if any, has nothing left to do. */
void dm_reg_attempt_end(struct dm_registers *registers, struct dm_reg_attempt *attempt);

/* A name without tasks, attempts and debts is only a copy, for the next time: it may be freed here. */
void dm_reg_name_forget(struct dm_registers *registers, struct dm_reg_name *name);

/* The value of the name is this one. */
void dm_reg_name_put_copy(struct dm_registers *registers, struct dm_reg_name *name, const struct dm_reg_reply *reply);

/* The swap under way is done: its value is the name's now. */
void dm_reg_name_put_next(struct dm_registers *registers, struct dm_reg_name *name);

/* Its tasks and attempts are the caller's. */
void dm_reg_name_free_memory(struct dm_reg_name *name);

/* What became of a try to go on with a task. */
enum dm_reg_progress {
    DM_REG_TASK_WAITS,  /* for time, a reply, or a session */
    DM_REG_TASK_MOVES,  /* something is different now: try again */
    DM_REG_TASK_IS_GONE /* the task is answered, and freed */
};

/* The last task of the name; NULL without memory. */
struct dm_reg_task *dm_reg_task_add(struct dm_registers *registers, struct dm_reg_name *name, enum dm_reg_act act,
                                    struct dm_reg_attempt *attempt, int owed_count);

/* The task goes on at another name, as another act. */
enum dm_reg_progress dm_reg_task_move(struct dm_registers *registers, struct dm_reg_task *task,
                                      struct dm_reg_name *name, enum dm_reg_act act);

/* Forgets what the task has done so far, with a session that is lost now: it reads the name, and does its step anew. */
enum dm_reg_progress dm_reg_task_begin_again(struct dm_reg_task *task);

/* The condition that the task is about; it stays in memory until the task is finished. */
void dm_reg_task_set_condition(struct dm_reg_task *task, struct dm_reg_name *condition);

/* True of a step that puts its attempt into the value. */
bool dm_reg_task_refers(const struct dm_reg_task *task);

/* A person must mend something: the task ends with this verdict, but what is owed stays owed. */
enum dm_reg_progress dm_reg_task_refuse(struct dm_registers *registers, struct dm_reg_task *task,
                                        enum dm_verdict verdict, const char *reason);

/* Gives the answer now; the task may go on without somebody who waits for it. */
void dm_reg_task_answer(struct dm_registers *registers, struct dm_reg_task *task, const char *refusal);

/*
 * D4: the answer to the task's swap will not come.  A hold that a wait may have given back is not claimed in other
 * data, because somebody may have had the lock since.
 */
void dm_reg_task_note_perhaps_left(struct dm_registers *registers, const struct dm_reg_task *task);

/* IS_GONE.  With `attempt`, the attempt is over, too. */
enum dm_reg_progress dm_reg_task_finish(struct dm_registers *registers, struct dm_reg_task *task);
enum dm_reg_progress dm_reg_task_finish_with(struct dm_registers *registers, struct dm_reg_task *task,
                                             enum dm_verdict verdict);
enum dm_reg_progress dm_reg_task_finish_attempt(struct dm_registers *registers, struct dm_reg_task *task);
enum dm_reg_progress dm_reg_task_finish_attempt_with(struct dm_registers *registers, struct dm_reg_task *task,
                                                     enum dm_verdict verdict);

/* CLAIM: the new data may name the attempt with its new session, so that is where it is to be ended. */
void dm_reg_task_adopt_claimer(struct dm_reg_task *task);
void dm_reg_task_leave_claimer(struct dm_reg_task *task);

/* ---- conditions.c ------------------------------------------------------------------------ */

/* True of a task of a condition: its name's value is a binding. */
bool dm_conditions_is_task(const struct dm_reg_task *task);

/* Goes on with a task whose binding has been read, or swapped. */
enum dm_reg_progress dm_conditions_apply(struct dm_registers *registers, struct dm_reg_task *task);
enum dm_reg_progress dm_conditions_settle(struct dm_registers *registers, struct dm_reg_task *task);

/* SLEEPERS, at the mutex. */
enum dm_reg_progress dm_conditions_count(struct dm_registers *registers, struct dm_reg_task *task,
                                         const struct dm_reg_name_value *value);

/* ---- news.c ------------------------------------------------------------------------------ */

/* A renewal is answered after the next beat of the attempt's session. */
void dm_registers_push_renewal(struct dm_registers *registers, const struct dm_reg_renewal *renewal);

/* Answers renewals whose session has proved a later beat, or is lost. */
void dm_registers_renew_all(struct dm_registers *registers);

/* Renewals get no answer. */
void dm_registers_leave_renewals(struct dm_registers *registers);

/* A message of this kind, without an answer. */
void dm_registers_tell_about(struct dm_registers *registers, const struct dm_reg_attempt *attempt,
                             enum dm_message_kind kind);

/* Tells the attempts what has become of sessions since the last time.  False: nothing. */
bool dm_registers_tell_names(struct dm_registers *registers);

/* A swap has an effect on an attempt. */
void dm_registers_take_notice(struct dm_registers *registers, const struct dm_reg_notice *notice);
/* The same of another process's swap: whatever is asked next about the name reads it first. */
void dm_registers_hear_notice(struct dm_registers *registers, const struct dm_reg_notice *notice);

/* ---- tasks.c ----------------------------------------------------------------------------- */

/* Goes on with all tasks that can.  Returns when the next one can. */
int64_t dm_registers_run_names(struct dm_registers *registers);

/* The answer to a name's request. */
void dm_registers_name_replied(struct dm_registers *registers, const struct dm_reg_request *request,
                               const struct dm_reg_reply *reply);

/* ---- steps.c ----------------------------------------------------------------------------- */

/* Does the step to the decoded value of the name, and sends the new value if there is one. */
enum dm_reg_progress dm_reg_task_step(struct dm_registers *registers, struct dm_reg_task *task,
                                      struct dm_reg_name_value *value);

/* ---- notes.c ----------------------------------------------------------------------------- */

/* The note about the present holder.  False without memory. */
bool dm_reg_task_begin_note(struct dm_registers *registers, struct dm_reg_task *task,
                            const struct dm_reg_name_value *value);

/* Reads the holder's session, or writes the note. */
enum dm_reg_progress dm_reg_task_send_note(struct dm_registers *registers, struct dm_reg_task *task);

/* The answer to the request about a note. */
void dm_registers_note_replied(struct dm_registers *registers, const struct dm_reg_request *request,
                               const struct dm_reg_reply *reply);

/* ---- settle.c ---------------------------------------------------------------------------- */

/* Gives the answer, unless the task must go on. */
enum dm_reg_progress dm_reg_task_settle(struct dm_registers *registers, struct dm_reg_task *task);

/* ---- questions.c ------------------------------------------------------------------------- */

/* Takes a question; its answer goes to the batch.  False without memory. */
bool dm_registers_take(struct dm_registers *registers, const struct dm_question *question, struct dm_reg_batch *batch,
                       int index);

/* A release that cannot be sent now: the store owes it from here on, although nobody waits for its answer. */
void dm_registers_owe(struct dm_registers *registers, const struct dm_question *question);

/* Nobody gets an answer while there is no connection; what is owed stays. */
void dm_registers_names_down(struct dm_registers *registers);

/* The store has other data: copies and debts are forgotten, waiters ask anew, holds are claimed. */
void dm_registers_names_moved(struct dm_registers *registers);

/* True if a release is still to be done, and if a session that nothing refers to is still to be ended. */
bool dm_registers_is_owing(const struct dm_registers *registers);
bool dm_registers_has_sessions(const struct dm_registers *registers);

/* ---- sessions.c -------------------------------------------------------------------------- */

/* A session of this process that goes on needs no watching; one that is over is watched like those of others. */
bool dm_registers_is_our_living(const struct dm_registers *registers, const struct dm_reg_session_id *id);

/* The session for this lease that new references name, made if there is none.  NULL without memory. */
struct dm_reg_own *dm_registers_own(struct dm_registers *registers, uint32_t lease_ms);

/* Somebody needs it to be certain. */
void dm_registers_need(struct dm_registers *registers, struct dm_reg_own *own);

/* Lets time pass for sessions, watched ones and the mark, and sends what they want.  Returns when the next is due. */
int64_t dm_registers_run_sessions(struct dm_registers *registers);

void dm_registers_own_replied(struct dm_registers *registers, const struct dm_reg_request *request,
                              const struct dm_reg_reply *reply);
void dm_registers_watched_replied(struct dm_registers *registers, const struct dm_reg_request *request,
                                  const struct dm_reg_reply *reply);
void dm_registers_mark_replied(struct dm_registers *registers, const struct dm_reg_request *request,
                               const struct dm_reg_reply *reply);

void dm_registers_sessions_moved(struct dm_registers *registers);

/* ---- requests.c -------------------------------------------------------------------------- */

/* Sends one item; a read goes with all others of the turn, in dm_registers_flush().  False: not sent. */
bool dm_registers_send(struct dm_registers *registers, const struct dm_reg_request *request,
                       const struct dm_reg_item *item);
bool dm_registers_send_list(struct dm_registers *registers, const struct dm_reg_request *request, const char *prefix,
                            const char *after, int most);

/* Sends the reads.  False: the driver does not take them, and dm_registers_answer_failed() answers. */
bool dm_registers_flush(struct dm_registers *registers);

/* The time since 1970. */
int64_t dm_registers_wall_us(const struct dm_registers *registers);

/* The bytes of a notice, and back. */
size_t dm_registers_write_notice(const struct dm_reg_notice *notice, char to[DM_REG_NOTICE_ROOM]);
bool dm_registers_read_notice(const void *text, size_t size, struct dm_reg_notice *ret_notice);

/* ---- client.c ---------------------------------------------------------------------------- */

/* The functions that the driver calls. */
struct dm_reg_client dm_registers_client(struct dm_registers *registers);

/* Reads that the driver has not taken have no answer. */
void dm_registers_answer_failed(struct dm_registers *registers);

/* ---- look.c ------------------------------------------------------------------------------ */

/* Room for so many answers.  NULL without memory. */
struct dm_reg_look *dm_reg_look_new(int count);
void dm_reg_look_free(struct dm_reg_look *look);

/* The caller counts look->left up to `count` before the first; a look that cannot be sent has its answer at once. */
void dm_reg_look_read(struct dm_registers *registers, struct dm_reg_look *look, int index, const char *key);
/* The one question of its look. */
void dm_reg_look_list(struct dm_registers *registers, struct dm_reg_look *look, const char *prefix, const char *after,
                      int most);

void dm_registers_look_replied(const struct dm_reg_request *request, const struct dm_reg_reply *reply);
void dm_registers_look_listed(struct dm_reg_look *look, const char *const *keys, int count, bool is_last,
                              const char *reason);

/* The store has ended: looks get no answers. */
void dm_registers_end_looks(struct dm_registers *registers);

/* ---- view.c ------------------------------------------------------------------------------ */

/* As the operations of the wall. */
enum dm_verdict dm_registers_view(struct dm_registers *registers, struct dm_view *view,
                                  const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM]);

enum dm_verdict dm_registers_inform(struct dm_registers *registers, const struct dm_question *question,
                                    const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM]);

/* ---- sweep.c ----------------------------------------------------------------------------- */

/* Goes on with the sweep if it is due.  Returns when that is. */
int64_t dm_registers_run_sweep(struct dm_registers *registers);

/* The store has other data. */
void dm_registers_sweep_moved(struct dm_registers *registers);

/* ---- rest.c ------------------------------------------------------------------------------ */

/* Somebody asks. */
void dm_registers_note_use(struct dm_registers *registers);

/* Closes the connection if nobody has needed it for long.  Returns when to look again. */
int64_t dm_registers_run_rest(struct dm_registers *registers);

/* ---- turns.c ----------------------------------------------------------------------------- */

/* Sleeps until a post, the deadline, or for nothing; works for all meanwhile.  As dm_store_sleep(). */
bool dm_registers_sleep(struct dm_registers *registers, const struct dm_deadline *deadline, int cancel_state);

/* Adds to the watch what the loop thread must wait for. */
void dm_registers_watch(struct dm_registers *registers, struct dm_watch *watch);

#endif
