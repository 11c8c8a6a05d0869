/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Submitted questions: sent without waiting; a handler gets the answers.
 *
 * A script that the server does not know is not sent again here.  The hold's release may have been posted by then, and
 * a renewal after it would restore the hold on a server without data.  So the caller gets AGAIN and chooses the
 * contents again, and the next post of that script sends its text.
 *
 * On one server the questions are one script call; in a Cluster polls and renewals are one script call for each, in a
 * row, because keys of a call must be in one slot.
 *
 * A posting belongs to the caller until it is sent, then to the link, which calls `answered` exactly once, with the
 * reply, or with NULL if the connection has broken; `answered` frees the posting.
 *
 * A batch in a Cluster is a number of parts, one script call each.  The link calls `part_answered` once for each part,
 * on any thread; the last of these calls ends the batch.
 */
#include <stdlib.h>
#include <string.h>

#include "stores/redis/parts.h"
#include "stores/redis/wire/reply.h"

/* NULL without memory. */
static struct dm_posting *new_posting(struct dm_store *store, const struct dm_question *questions, int count,
                                      dm_answers_fn done, void *user)
{
    enum dm_op op = questions->op;
    bool has_parts = dm_redis(store)->is_cluster && (op == DM_OP_POLL || op == DM_OP_RENEW);
    size_t each = sizeof(struct dm_answer) + (has_parts ? sizeof(struct dm_part) : 0);
    struct dm_posting *posting = calloc(1, sizeof *posting + (size_t)count * each);

    if (!posting)
        return NULL;
    if (has_parts)
        posting->parts = (struct dm_part *)&posting->answers[count];
    for (int i = 0; has_parts && i < count; i++)
        posting->parts[i].place = questions[i].place;
    posting->left = count;
    posting->store = store;
    posting->op = op;
    posting->done = done;
    posting->user = user;
    posting->ret_more = questions->ret_more;
    posting->count = count;
    return posting;
}

static void free_posting(struct dm_posting *posting)
{
    free(posting->key);
    free(posting->refusal);
    free(posting);
}

/* ---- answers ----------------------------------------------------------------------------- */

/* Errors of a node of a Cluster that are about the slot, not the server: nothing was executed. */
static const struct {
    const char *word;
    enum dm_verdict verdict;
} redirects[] = {
    { "MOVED ", DM_SAYS_AGAIN },
    { "ASK ", DM_SAYS_AGAIN },
    { "TRYAGAIN ", DM_SAYS_NOTHING },
    { "CLUSTERDOWN ", DM_SAYS_NOTHING },
};

/*
 * True: the slot of the request is on another node, or is moving, and this is the answer to all questions.  A redirect
 * that cannot be followed counts as no answer.
 */
static bool is_redirected(const struct dm_route *route, struct dm_node *node, const char *key, const char *error,
                          enum dm_verdict *ret_verdict)
{
    for (size_t i = 0; i < sizeof redirects / sizeof redirects[0]; i++) {
        if (strncmp(error, redirects[i].word, strlen(redirects[i].word)) == 0) {
            bool is_known = dm_route_redirect(route, node, key, key ? strlen(key) : 0, error);

            *ret_verdict = is_known ? redirects[i].verdict : DM_SAYS_NOTHING;
            return true;
        }
    }
    return false;
}

/*
 * Acts on a reply as a whole.  key: the first of the request, in a Cluster.  True: all questions have the same answer,
 * *ret_verdict.  ret_refusal: the text of an error that people should read, untouched if there is none.
 */
static bool heed(const struct dm_posting *posting, struct dm_node *node, const char *key, const redisReply *reply,
                 enum dm_verdict *ret_verdict, const char **ret_refusal)
{
    const struct dm_redis *redis = dm_redis(posting->store);
    enum dm_error_row row = dm_reply_row(reply);

    if (row == DM_ROW_NONE)
        return false;
    if (dm_reply_is_denial(reply))
        dm_node_note_denial(node);
    if (redis->is_cluster && is_redirected(&redis->route, node, key, reply->str, ret_verdict))
        return true;
    if (row == DM_ROW_SCRIPT) {
        __atomic_store_n(&node->is_unknown[posting->op], true, __ATOMIC_RELAXED);
        *ret_verdict = DM_SAYS_AGAIN;
        return true;
    }
    if (row == DM_ROW_REDISCOVER)
        dm_node_distrust(node, reply->str);
    if (row == DM_ROW_REFUSED)
        *ret_refusal = reply->str;
    return false;
}

/*
 * Since when the server that answers is new; 0: it is old, or the request does not depend on that.  A server of a
 * quorum may have become new after the greeting, because its data were deleted.
 */
static int64_t read_since_us(const struct dm_posting *posting, const redisReply *reply)
{
    size_t usual = (size_t)posting->count + 1;
    struct dm_server server = { 0 };

    if (posting->op == DM_OP_ACQUIRE || posting->op == DM_OP_RENEW)
        dm_node_link_server(&posting->node->commands, &server);
    if (server.since_us && posting->op == DM_OP_RENEW && reply->elements > usual)
        return dm_redis_time_at(reply, usual);
    return (int64_t)server.since_us;
}

/* A dm_reply_fn. */
static void answered(void *user, const redisReply *reply)
{
    struct dm_posting *posting = user;
    const char *refusal = NULL;
    enum dm_verdict verdict;
    bool is_alike = reply && heed(posting, posting->node, posting->key, reply, &verdict, &refusal);
    int64_t since_us = reply ? read_since_us(posting, reply) : 0;

    for (int i = 0; reply && i < posting->count; i++) {
        if (is_alike)
            posting->answers[i].verdict = verdict;
        else
            dm_redis_read(posting->op, &(struct dm_reading){ reply, i, posting->ret_more }, &posting->answers[i]);
        posting->answers[i].since_us = since_us;
    }
    posting->done(posting->user, reply ? posting->answers : NULL, posting->count, refusal);
    free_posting(posting);
}

/* Keeps the first refusal; without memory there is none. */
static void keep_refusal(struct dm_posting *posting, const char *text)
{
    char *copy = strdup(text), *none = NULL;

    if (!__atomic_compare_exchange_n(&posting->refusal, &none, copy, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        free(copy);
}

/* a dm_reply_fn; a part without a reply stays answered NOTHING */
static void part_answered(void *user, const redisReply *reply)
{
    struct dm_part *part = user;
    struct dm_posting *posting = part->posting;
    struct dm_answer *answer = &posting->answers[part - posting->parts];
    const char *refusal = NULL;

    if (reply && !heed(posting, part->node, part->place->text[0], reply, &answer->verdict, &refusal))
        dm_redis_read(posting->op, &(struct dm_reading){ reply, 0, posting->ret_more }, answer);
    if (refusal)
        keep_refusal(posting, refusal);
    if (__atomic_sub_fetch(&posting->left, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    posting->done(posting->user, posting->answers, posting->count, posting->refusal);
    free_posting(posting);
}

/* ---- sending ----------------------------------------------------------------------------- */

/*
 * Clears the mark "unknown" for one post that sends the text; if that is lost with the connection, the next NOSCRIPT
 * sets the mark again.
 */
static void choose_form(const struct dm_posting *posting, struct dm_node *node, struct dm_args *args)
{
    if (__atomic_exchange_n(&node->is_unknown[posting->op], false, __ATOMIC_RELAXED))
        dm_redis_send_text(args, dm_redis_script(posting->store, posting->op));
}

/*
 * False if and only if the link is down: then `handler` is never called, and the loop thread opens the link.  Frees the
 * arguments.
 */
static bool send_to(struct dm_posting *posting, struct dm_node *node, struct dm_args *args, dm_reply_fn handler,
                    void *user)
{
    enum dm_link_result result = DM_LINK_DOWN;

    if (node) {
        choose_form(posting, node, args);
        result = dm_node_post(node, args, handler, user);
    }
    if (result == DM_LINK_DOWN)
        dm_route_wish(&dm_redis(posting->store)->route, node);
    dm_args_free(args);
    return result != DM_LINK_DOWN;
}

/* Without memory for the key, a node that redirects one name (ASK) is asked again. */
static bool post_at_once(struct dm_posting *posting, const struct dm_question *questions, struct dm_texts *texts)
{
    struct dm_redis *redis = dm_redis(posting->store);
    struct dm_args args;

    if (!texts || !dm_redis_write(posting->store, questions, posting->count, texts, &args))
        return false;
    posting->node = dm_route_of_args(&redis->route, &args);
    if (redis->is_cluster)
        posting->key = strndup(args.texts[3], args.lengths[3]);
    return send_to(posting, posting->node, &args, answered, posting);
}

static bool post_part(struct dm_part *part, const struct dm_question *question)
{
    struct dm_posting *posting = part->posting;
    struct dm_texts texts;
    struct dm_args args;

    if (!dm_redis_write(posting->store, question, 1, &texts, &args))
        return false;
    part->node = dm_route_of_args(&dm_redis(posting->store)->route, &args);
    return send_to(posting, part->node, &args, part_answered, part);
}

/*
 * `count` parts could not be sent: they count as answered, with NOTHING.  If all others have been answered, nothing is
 * left that could call the handler, and it cannot be called here, because the caller may hold a lock.  Then the answers
 * are lost, as if the connection had broken a moment earlier, and the posting is the caller's again: false.
 */
static bool leave_out(struct dm_posting *posting, int count)
{
    return count == 0 || __atomic_sub_fetch(&posting->left, count, __ATOMIC_ACQ_REL) > 0;
}

/*
 * All parts in one write: all are of one lane, which is a node.  A part that cannot be sent is left out: other parts
 * may go to other nodes, ahead of their slots.  Once all parts are sent, the posting is no longer ours.
 */
static bool post_each(struct dm_posting *posting, const struct dm_question *questions)
{
    struct dm_node *node = dm_route_of_slot(&dm_redis(posting->store)->route, posting->parts[0].place->slot);
    int left_out = 0;

    if (!node)
        return false;
    dm_node_hold(node);
    for (int i = 0, count = posting->count; i < count; i++) {
        posting->parts[i].posting = posting;
        left_out += !post_part(&posting->parts[i], &questions[i]);
    }
    dm_node_let_go(node);
    return leave_out(posting, left_out);
}

/* The arguments borrow the texts until the command is formatted.  Many texts would not fit a small stack. */
bool dm_redis_submit(struct dm_store *store, const struct dm_question *questions, int count, dm_answers_fn done,
                     void *user)
{
    struct dm_posting *posting = new_posting(store, questions, count, done, user);
    struct dm_texts one, *many = NULL;
    bool is_posted;

    if (!posting)
        return false;
    if (count > 1 && !posting->parts)
        many = malloc((size_t)count * sizeof *many);
    if (posting->parts)
        is_posted = post_each(posting, questions);
    else
        is_posted = post_at_once(posting, questions, count > 1 ? many : &one);
    free(many);
    if (!is_posted)
        free_posting(posting);
    return is_posted;
}
