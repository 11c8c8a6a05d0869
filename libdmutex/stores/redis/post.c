/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posted requests: sent without waiting; a handler gets the store's answers.
 *
 * A script that the server does not know is not sent again here.  The hold's release may have been posted by then, and
 * a renewal after it would restore the hold on a server without data.  So the caller gets AGAIN and chooses the
 * contents again, and the next post of that script sends its text.
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

struct dm_posting *dm_posting_new(struct dm_store *store, enum dm_posted_script script, dm_read_fn read, int count,
                                  dm_answers_fn handler, void *user)
{
    bool has_parts = dm_redis(store)->is_cluster && (script == DM_POSTS_POLL || script == DM_POSTS_RENEW);
    size_t each = sizeof(struct dm_answer) + (has_parts ? sizeof(struct dm_part) : 0);
    struct dm_posting *posting = calloc(1, sizeof *posting + (size_t)count * each);

    if (!posting)
        return NULL;
    if (has_parts)
        posting->parts = (struct dm_part *)&posting->answers[count];
    posting->left = count;
    posting->store = store;
    posting->script = script;
    posting->read = read;
    posting->handler = handler;
    posting->user = user;
    posting->count = count;
    return posting;
}

void dm_posting_free(struct dm_posting *posting)
{
    if (!posting)
        return;
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
static bool is_redirected(struct dm_member *member, const char *key, const char *error, enum dm_verdict *ret_verdict)
{
    for (size_t i = 0; i < sizeof redirects / sizeof redirects[0]; i++) {
        if (strncmp(error, redirects[i].word, strlen(redirects[i].word)) == 0) {
            bool is_known = dm_fleet_redirect(member->fleet, member, key, key ? strlen(key) : 0, error);

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
static bool heed(const struct dm_posting *posting, struct dm_member *member, const char *key, const redisReply *reply,
                 enum dm_verdict *ret_verdict, const char **ret_refusal)
{
    enum dm_error_row row = dm_reply_row(reply);

    if (row == DM_ROW_NONE)
        return false;
    if (dm_redis(posting->store)->is_cluster && is_redirected(member, key, reply->str, ret_verdict))
        return true;
    if (row == DM_ROW_SCRIPT) {
        __atomic_store_n(&member->is_unknown[posting->script], true, __ATOMIC_RELAXED);
        *ret_verdict = DM_SAYS_AGAIN;
        return true;
    }
    if (row == DM_ROW_REDISCOVER)
        dm_node_distrust(&member->node, reply->str);
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

    if (posting->script == DM_POSTS_ACQUIRE || posting->script == DM_POSTS_RENEW)
        dm_node_link_server(&posting->member->node.commands, &server);
    if (server.since_us && posting->script == DM_POSTS_RENEW && reply->elements > usual)
        return dm_redis_time_at(reply, usual);
    return (int64_t)server.since_us;
}

/* A dm_reply_fn. */
static void answered(void *user, const redisReply *reply)
{
    struct dm_posting *posting = user;
    const char *refusal = NULL;
    enum dm_verdict verdict;
    bool is_alike = reply && heed(posting, posting->member, posting->key, reply, &verdict, &refusal);
    int64_t since_us = reply ? read_since_us(posting, reply) : 0;

    for (int i = 0; reply && i < posting->count; i++) {
        if (is_alike)
            posting->answers[i].verdict = verdict;
        else
            posting->answers[i] = posting->read(reply, i);
        posting->answers[i].since_us = since_us;
    }
    posting->handler(posting->user, reply ? posting->answers : NULL, posting->count, refusal);
    dm_posting_free(posting);
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

    if (reply && !heed(posting, part->member, part->place->text[0], reply, &answer->verdict, &refusal))
        *answer = posting->read(reply, 0);
    if (refusal)
        keep_refusal(posting, refusal);
    if (__atomic_sub_fetch(&posting->left, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    posting->handler(posting->user, posting->answers, posting->count, posting->refusal);
    dm_posting_free(posting);
}

/* ---- sending ----------------------------------------------------------------------------- */

static struct dm_script script_of(const struct dm_posting *posting)
{
    switch (posting->script) {
    case DM_POSTS_ACQUIRE:
        return SCRIPT(posting->store, acquire);
    case DM_POSTS_RELEASE:
        return SCRIPT(posting->store, release);
    case DM_POSTS_POLL:
        return SCRIPT(posting->store, poll);
    default:
        return SCRIPT(posting->store, renew);
    }
}

/*
 * Clears the mark "unknown" for one post that sends the text; if that is lost with the connection, the next NOSCRIPT
 * sets the mark again.
 */
static void choose_form(const struct dm_posting *posting, struct dm_member *member, struct dm_args *args)
{
    if (__atomic_exchange_n(&member->is_unknown[posting->script], false, __ATOMIC_RELAXED))
        dm_redis_send_text(args, script_of(posting));
}

/*
 * False if and only if the link is down: then `handler` is never called, and the loop thread opens the link.  Frees the
 * arguments.
 */
static bool send_to(struct dm_posting *posting, struct dm_member *member, struct dm_args *args, dm_post_fn *post,
                    dm_reply_fn handler, void *user)
{
    enum dm_link_result result = DM_LINK_DOWN;

    if (member) {
        choose_form(posting, member, args);
        result = post(&member->node, args, handler, user);
    }
    if (result == DM_LINK_DOWN)
        dm_fleet_wish(&dm_redis(posting->store)->fleet, member);
    dm_args_free(args);
    return result != DM_LINK_DOWN;
}

/* Without memory for the key, a node that redirects one name (ASK) is asked again. */
bool dm_posting_send(struct dm_posting *posting, struct dm_args *args, dm_post_fn *post)
{
    const struct dm_redis *redis = dm_redis(posting->store);

    posting->member = dm_fleet_of_args(&dm_redis(posting->store)->fleet, args);
    if (redis->is_cluster)
        posting->key = strndup(args->texts[3], args->lengths[3]);
    return send_to(posting, posting->member, args, post, answered, posting);
}

bool dm_posting_send_part(struct dm_posting *posting, int index, struct dm_args *args, dm_post_fn *post)
{
    struct dm_part *part = &posting->parts[index];

    part->posting = posting;
    part->member = dm_fleet_of_args(&dm_redis(posting->store)->fleet, args);
    return send_to(posting, part->member, args, post, part_answered, part);
}

/*
 * The parts that are left out count as answered.  If all others have been answered, nothing is left that could call the
 * handler, and it cannot be called here, because the caller may hold a lock.  Then the answers are lost, as if the
 * connection had broken a moment earlier.
 */
bool dm_posting_leave_out(struct dm_posting *posting, int count)
{
    return __atomic_sub_fetch(&posting->left, count, __ATOMIC_ACQ_REL) > 0;
}
