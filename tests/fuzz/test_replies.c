/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replies to every script and greeting: only the library's own answer is a grant, and no reply does harm. The first
 * byte of an input chooses the question, the rest is the server's reply. Replaces the node (node.c).
 */
#include <hiredis.h>
#include <stdbool.h>
#include <string.h>

#include "../lib/one_node.h"
#include "fuzz.h"
#include "link/reader.h"
#include "stores/redis/node/greeting.h"
#include "stores/redis/parts.h"
#include "stores/redis/wire/keys.h"
#include "stores/redis/wire/reply.h"

static const char *const seeds[] = {
    "a*4\r\n$5\r\nowned\r\n$16\r\n1700000000000000\r\n:1\r\n:1700000000000000\r\n",
    "a*5\r\n$6\r\nqueued\r\n:1\r\n:9000\r\n:77\r\n:1700000000000000\r\n",
    "b*3\r\n$4\r\nbusy\r\n:9000\r\n:1\r\n",
    "b*5\r\n$4\r\nbusy\r\n:9223372036854775807\r\n:1700000000000000\r\n:9223372036854775807\r\n:0\r\n",
    "a-NOSCRIPT No matching script.\r\n*1\r\n$4\r\nfull\r\n",
    "b-OOM command not allowed\r\n",
    "c*1\r\n$4\r\nleft\r\n",
    "d*2\r\n$8\r\nreleased\r\n:1\r\n",
    "d*1\r\n$8\r\nnotowner\r\n",
    "e*3\r\n*4\r\n$5\r\nowned\r\n:5\r\n:0\r\n:7\r\n*2\r\n$7\r\nunknown\r\n:1\r\n*1\r\n$5\r\nerror\r\n",
    "f*4\r\n:1\r\n:2\r\n:0\r\n:1700000000000000\r\n",
    "g:1\r\n",
    "h*2\r\n$6\r\nbroken\r\n:1\r\n",
    "i:0\r\n",
    "j*7\r\n$34\r\n0123456789abcdef0123456789abcdef:1\r\n:2\r\n:900\r\n:5\r\n$10\r\n12 host app\r\n:3\r\n:1\r\n",
    "k*3\r\n$7\r\nwaiting\r\n:1\r\n:1700000000000000\r\n",
    "k*1\r\n$5\r\nbound\r\n",
    "l*5\r\n$5\r\nowned\r\n:5\r\n:0\r\n:7\r\n:1\r\n",
    "m*4\r\n$5\r\nmoved\r\n:9\r\n:1\r\n:1\r\n",
    "m*1\r\n$4\r\nnone\r\n",
    "m*2\r\n$5\r\nbound\r\n$4\r\nng/l\r\n",
    "n:0\r\n",
    "o+OK\r\n",
    "p*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n",
    "p-LOADING\r\n",
    "q$60\r\n# Server\r\nrun_id:0123456789abcdef\r\nmaxmemory_policy:noeviction\r\n\r\n",
    "r:17\r\n",
    "s*2\r\n$8\r\nreleased\r\n:1\r\n",
    "s-NOSCRIPT No matching script.\r\n",
    NULL,
};

static const char *const words[] = {
    "\r\n",
    "*",
    "$",
    ":",
    "+",
    "-",
    "*-1\r\n",
    "$-1\r\n",
    ":-1\r\n",
    "*0\r\n",
    "$0\r\n\r\n",
    "_\r\n",
    "#t\r\n",
    ",1.5\r\n",
    "%1\r\n",
    "*1\r\n*1\r\n*1\r\n",
    "~1\r\n",
    ">1\r\n",
    "(123\r\n",
    "=5\r\ntxt:a\r\n",
    "$5\r\nowned\r\n",
    "$6\r\nqueued\r\n",
    "$4\r\nleft\r\n",
    "$5\r\nbound\r\n",
    "$5\r\nmoved\r\n",
    "$8\r\nreleased\r\n",
    "$7\r\nwaiting\r\n",
    "$7\r\nunknown\r\n",
    "-READONLY x\r\n",
    "-ERR x\r\n",
    "-NOAUTH\r\n",
    "*1025\r\n",
    "*1000000000\r\n",
    "$1000000000\r\n",
    ":9223372036854775807\r\n",
    ":-9223372036854775808\r\n",
    "$19\r\n9999999999999999999\r\n",
    "\nrun_id:",
    "\nmaxmemory_policy:",
    NULL,
};

const struct fuzzer fuzzer = { "replies", seeds, words, 60000, 5000000 };

/* ---- the node ---------------------------------------------------------------------------- */

static struct dm_reader reader;
static struct {
    const char *bytes;
    size_t length;
} to_come;
static bool says_owned; /* the last reply says so, and has a token */

static void feed(size_t length)
{
    must(dm_reader_feed(&reader, to_come.bytes, length));
    to_come.bytes += length;
    to_come.length -= length;
}

/* Nested arrays of any reply, so that the stack of whoever frees it is bounded. */
static int levels_of(const redisReply *reply)
{
    int most = 0;

    for (size_t i = 0; i < reply->elements; i++) {
        int levels = levels_of(reply->element[i]);

        most = levels > most ? levels : most;
    }
    return most + (reply->type == REDIS_REPLY_ARRAY);
}

static redisReply *next_reply(void)
{
    redisReply *reply;
    uint64_t token;

    while (dm_reader_next(&reader, &reply) && !reply && to_come.length)
        feed(to_come.length);
    must(!reply || levels_of(reply) <= 7);
    says_owned = reply && dm_reply_is(reply, "owned") && dm_reply_number(reply, 1, &token);
    return reply;
}

static void must_be_written(const struct dm_args *args)
{
    struct dm_command command = dm_args_format(args);

    must(command.bytes && command.length);
    dm_command_free(&command);
}

enum dm_link_result dm_node_call(struct dm_node *node, struct dm_args *args, const struct dm_deadline *deadline,
                                 struct redisReply **ret_reply)
{
    (void)node;
    (void)deadline;
    must_be_written(args);
    *ret_reply = next_reply();
    return *ret_reply ? DM_LINK_OK : DM_LINK_BROKEN;
}

/* Answers at once. */
enum dm_link_result dm_node_post(struct dm_node *node, struct dm_args *args, dm_reply_fn handler, void *user)
{
    redisReply *reply = next_reply();

    (void)node;
    must_be_written(args);
    handler(user, reply);
    if (reply)
        dm_reply_free(reply);
    return DM_LINK_OK;
}

bool dm_node_is_ready(struct dm_node *node)
{
    (void)node;
    return true;
}

void dm_node_distrust(struct dm_node *node, const char *reason)
{
    (void)node;
    must(reason);
}

void dm_node_reason(struct dm_node *node, struct dm_link *link, char ret_reason[DM_REASON_ROOM])
{
    (void)node;
    (void)link;
    ret_reason[0] = '\0';
}

/* ---- questions --------------------------------------------------------------------------- */

static struct dm_redis redis;
static struct dm_place *mutex_keys, *condition_keys;
static struct dm_question question; /* its common part is the same for all operations */
static union dm_more more;
static char reason[DM_REASON_ROOM];

/* A few times a span, in nanoseconds, later than any time of ours. */
static void must_be_spans(const struct dm_answer *answer)
{
    const int64_t most_ms = INT64_MAX / DM_NS_PER_MS / 16;

    must(answer->remaining_ms <= most_ms && answer->grace_ms <= most_ms);
}

static void must_not_be_made_up(struct dm_answer answer)
{
    must(answer.verdict != DM_SAYS_OWNED || says_owned);
    must(answer.verdict <= DM_SAYS_DONE);
    must_be_spans(&answer);
}

/* A dm_answers_fn. */
static void must_be_answers(void *user, const struct dm_answer *answers, int count, const char *refusal)
{
    int *asked = user;

    must(count == *asked);
    must(!refusal || answers);
    for (int i = 0; answers && i < count; i++) {
        must(answers[i].verdict <= DM_SAYS_DONE);
        must_be_spans(&answers[i]);
    }
    *asked = 0; /* answered */
}

static struct dm_answer ask(enum dm_op op)
{
    question.op = op;
    question.ret_more = &more;
    return dm_redis_ask(&redis.store, &question, &dm_deadline_endless, reason);
}

/* Posts `count` equal questions. */
static void post(enum dm_op op, int count)
{
    struct dm_question questions[4];
    int asked = count;

    question.op = op;
    for (int i = 0; i < count; i++)
        questions[i] = question;
    must(dm_redis_submit(&redis.store, questions, count, must_be_answers, &asked) && asked == 0);
}

static void ask_acquire(void)
{
    const struct dm_owed owed[] = { { 1, 2, DM_END_UNLOCKED }, { 1, 3, DM_END_DIED } };

    question.acquire.may_queue = true;
    question.acquire.owed = owed;
    question.acquire.owed_count = 2;
    must_not_be_made_up(ask(DM_OP_ACQUIRE));
}

static void ask_try(void)
{
    must_not_be_made_up(ask(DM_OP_ACQUIRE));
}

static void post_acquire(void)
{
    post(DM_OP_ACQUIRE, 1);
}

static void ask_cancel(void)
{
    must_not_be_made_up(ask(DM_OP_CANCEL));
}

static void ask_release(void)
{
    must(ask(DM_OP_RELEASE).verdict <= DM_SAYS_DONE);
}

static void post_release(void)
{
    post(DM_OP_RELEASE, 1);
}

static void post_polls(void)
{
    post(DM_OP_POLL, 4);
}

static void ask_renew(void)
{
    must(ask(DM_OP_RENEW).verdict <= DM_SAYS_DONE);
}

static void post_renewals(void)
{
    post(DM_OP_RENEW, 4);
}

static void ask_consistent(void)
{
    must(ask(DM_OP_CONSISTENT).verdict <= DM_SAYS_DONE);
}

static void ask_force(void)
{
    must(ask(DM_OP_FORCE).verdict <= DM_SAYS_DONE);
}

static void ask_drop(void)
{
    question.is_anonymous = true;
    must(ask(DM_OP_DROP).verdict <= DM_SAYS_DONE);
}

static void ask_info(void)
{
    const dmutex_info_t *shown = &more.info.shown;

    if (ask(DM_OP_INFO).verdict != DM_SAYS_DONE)
        return;
    must(memchr(shown->owner, '\0', sizeof shown->owner) && memchr(shown->host, '\0', sizeof shown->host));
    must(memchr(shown->program, '\0', sizeof shown->program));
}

static void ask_wait(void)
{
    question.leave = (struct dm_leaving){ .attempt = 3, .end = DM_END_UNLOCKED, .mutex = "ng/l" };
    question.condition = condition_keys;
    must_not_be_made_up(ask(DM_OP_COND_WAIT));
}

static void ask_cond_cancel(void)
{
    question.condition = condition_keys;
    must_not_be_made_up(ask(DM_OP_COND_CANCEL));
}

static void ask_signal(void)
{
    question.condition = condition_keys;
    question.signal.mutex = "ng/l";
    question.signal.most = 1;
    if (ask(DM_OP_COND_SIGNAL).verdict == DM_SAYS_BOUND)
        must(memchr(more.mutex, '\0', sizeof more.mutex) && strlen(more.mutex) > 1);
}

static void ask_cond_drop(void)
{
    question.condition = condition_keys;
    must(ask(DM_OP_COND_DROP).verdict <= DM_SAYS_DONE);
}

/* ---- greetings --------------------------------------------------------------------------- */

static void greet(enum dm_greeting_step step)
{
    struct dm_url url = { .has_grace = true };
    struct dm_greeting greeting = { .url = &url, .steps = { step }, .step_count = 1 };
    redisReply *reply = next_reply();

    if (reply && !dm_greeting_take(&greeting, reply, reason))
        must(strlen(reason) < DM_REASON_ROOM);
    if (reply && !dm_greeting_take_identity(&greeting, reply, reason))
        must(strlen(reason) < DM_REASON_ROOM);
    if (reply)
        dm_reply_free(reply);
}

static void greet_plainly(void)
{
    greet(DM_STEP_SUBSCRIBE);
}

static void greet_role(void)
{
    greet(DM_STEP_ROLE);
}

static void greet_info(void)
{
    greet(DM_STEP_INFO);
}

static void greet_numbers(void)
{
    greet(DM_STEP_ID);
    greet(DM_STEP_BORN);
    greet(DM_STEP_KILL);
}

static void (*const questions[])(void) = {
    ask_acquire,   ask_try,    ask_cancel, ask_release,   post_polls,      post_renewals, ask_consistent,
    ask_force,     ask_drop,   ask_info,   ask_wait,      ask_cond_cancel, ask_signal,    ask_cond_drop,
    greet_plainly, greet_role, greet_info, greet_numbers, post_release,    post_acquire,  ask_renew,
};

static void begin(void)
{
    redis.route = one_node_route(false);
    dm_redis_init(&redis, "dmutex", "0123456789abcdef0123456789abcdef", "1 host program");
    mutex_keys = dm_keys_new(&redis.naming, "g/l", 0);
    condition_keys = dm_keys_new_condition(&redis.naming, NULL, "g/c", 0);
    must(mutex_keys && condition_keys);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    if (length < 1)
        return 0;
    if (!mutex_keys)
        begin();
    question =
        (struct dm_question){ .place = mutex_keys, .thread = 1, .attempt = 4, .request = { 1, 1 }, .lease_ms = 1000 };
    must(dm_reader_begin(&reader));
    to_come.bytes = (const char *)bytes + 1;
    to_come.length = length - 1;
    feed(to_come.length / 2);
    questions[(unsigned)(bytes[0] + 256 - 'a') % (sizeof questions / sizeof questions[0])]();
    dm_reader_end(&reader);
    return 0;
}
