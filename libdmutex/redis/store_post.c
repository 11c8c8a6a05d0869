/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posted requests: sent without waiting, and answered in the store's words.
 *
 * A script that the server does not know is not sent again here.  The release of a hold may have been posted meanwhile,
 * and a renewal behind the release would put the hold back on a server without data; so the caller is told AGAIN and
 * chooses the contents anew, and the next post of that script sends the text.
 *
 * A posting belongs to the caller until it is sent, then to the link, which calls `answered` exactly once: with the
 * reply, or with NULL when the connection has broken; there the posting is freed.
 */
#include <stdlib.h>

#include "redis/reply.h"
#include "redis/store_parts.h"

static const dm_read_fn readers[DM_POSTED_SCRIPTS] = {
    [DM_POSTS_RELEASE] = dm_store_read_release,
    [DM_POSTS_POLL] = dm_store_read_poll,
    [DM_POSTS_RENEW] = dm_store_read_renew,
};

/*
 * The word "unknown" is taken here, by one post: if the text is lost with the connection, the next NOSCRIPT says so
 * again.
 */
struct dm_posting *dm_posting_new(struct dm_store *store, enum dm_posted_script script, int count,
                                  dm_answers_fn handler, void *user)
{
    struct dm_posting *posting = calloc(1, sizeof *posting + (size_t)count * sizeof posting->answers[0]);

    if (!posting)
        return NULL;
    posting->store = store;
    posting->script = script;
    posting->is_by_text = __atomic_exchange_n(&dm_redis(store)->is_unknown[script], false, __ATOMIC_RELAXED);
    posting->read = readers[script];
    posting->handler = handler;
    posting->user = user;
    posting->count = count;
    return posting;
}

/* Acts on the reply as a whole.  Returns the text of an error that a person should read, else NULL. */
static const char *heed(struct dm_posting *posting, const redisReply *reply, bool *ret_is_unknown)
{
    enum dm_error_row row = dm_reply_row(reply);

    *ret_is_unknown = row == DM_ROW_SCRIPT;
    if (row == DM_ROW_SCRIPT)
        __atomic_store_n(&dm_redis(posting->store)->is_unknown[posting->script], true, __ATOMIC_RELAXED);
    if (row == DM_ROW_REDISCOVER)
        dm_node_distrust(&dm_redis(posting->store)->node, reply->str);
    return row == DM_ROW_REFUSED ? reply->str : NULL;
}

/* A dm_reply_fn. */
static void answered(void *user, const redisReply *reply)
{
    struct dm_posting *posting = user;
    const char *refusal = NULL;
    bool is_unknown = false;

    if (reply)
        refusal = heed(posting, reply, &is_unknown);
    for (int i = 0; reply && i < posting->count; i++) {
        if (is_unknown)
            posting->answers[i].verdict = DM_SAYS_AGAIN;
        else
            posting->answers[i] = posting->read(reply, i);
    }
    posting->handler(posting->user, reply ? posting->answers : NULL, posting->count, refusal);
    free(posting);
}

/* DM_LINK_DOWN alone means that `answered` is never called; then the posting stays the caller's. */
bool dm_posting_send(struct dm_posting *posting, struct dm_args *args, dm_post_fn *post)
{
    enum dm_link_result result = post(&dm_redis(posting->store)->node, args, answered, posting);

    dm_args_free(args);
    return result != DM_LINK_DOWN;
}
