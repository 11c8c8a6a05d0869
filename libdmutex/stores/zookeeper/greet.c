/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a connection begins with: a session, a login, the nodes that all others are below, the epoch, and the inbox.
 *
 * Every connection has a session of its own, which nothing depends on: the library's sessions are registers.  So it
 * does not matter whether it is moved, or ends.
 *
 * The epoch is a random number, the name of the only child of its node.  A restored copy has it as well, but its zxid
 * is lower than what we have seen: then we replace it, which all others find at once, because each swap checks that
 * the node of the epoch is there.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/ident.h"
#include "stores/zookeeper/parts.h"

#define ROUNDS_MOST 5
#define WATCH_ALL_BELOW 1

/* ---- questions ----------------------------------------------------------------------------- */

/* Begins a request of the greeting.  Without memory the connection ends. */
static size_t begin(struct dm_zk *zk, int kind, int32_t type)
{
    struct dm_zk_item *item = dm_zk_item_add(zk, kind);

    if (!item)
        dm_zk_doom(zk, false, "out of memory");
    return dm_zk_begin(&zk->wire, item ? item->xid : 0, type);
}

static void end(struct dm_zk *zk, size_t at)
{
    if (!dm_zk_end(&zk->wire, at))
        dm_zk_doom(zk, false, "out of memory");
}

static void look_for(struct dm_zk *zk, const char *node)
{
    size_t at = begin(zk, DM_ZK_ITEM_LOOK, DM_ZK_EXISTS);

    dm_zk_add_path(zk, &zk->wire.out, "%s", node);
    dm_jute_add_bool(&zk->wire.out, false);
    end(zk, at);
}

static void ask_for_epoch(struct dm_zk *zk)
{
    size_t at = begin(zk, DM_ZK_ITEM_EPOCH, DM_ZK_CHILDREN);

    dm_zk_add_path(zk, &zk->wire.out, "/epoch");
    dm_jute_add_bool(&zk->wire.out, false);
    end(zk, at);
}

/* Events of all that happens below the inbox, from now on; the node need not be there. */
static void ask_for_notices(struct dm_zk *zk)
{
    size_t at = begin(zk, DM_ZK_ITEM_HEAR, DM_ZK_ADD_WATCH);

    dm_zk_add_path(zk, &zk->wire.out, "/i/%s", zk->inbox);
    dm_jute_add_int(&zk->wire.out, WATCH_ALL_BELOW);
    end(zk, at);
}

static void ask(struct dm_zk *zk)
{
    zk->lacks_nodes = zk->lacks_epoch = zk->has_empty_epoch = zk->is_older = false;
    if (!dm_zk_sync(zk))
        dm_zk_doom(zk, false, "out of memory");
    ask_for_epoch(zk);
    look_for(zk, "/r");
    look_for(zk, "/i");
    ask_for_notices(zk);
}

/* ---- what is missing ----------------------------------------------------------------------- */

static void add_making(const struct dm_zk *zk, struct dm_bytes *to)
{
    dm_jute_add_bytes(to, NULL, 0);
    dm_zk_add_acl(to, zk->url->user != NULL);
    dm_jute_add_int(to, 0);
}

static void make(struct dm_zk *zk, const char *node)
{
    size_t at = begin(zk, DM_ZK_ITEM_MAKE, DM_ZK_CREATE);

    dm_zk_add_path(zk, &zk->wire.out, "%s", node);
    add_making(zk, &zk->wire.out);
    end(zk, at);
}

static void add_part(struct dm_zk *zk, int32_t type, const char *name)
{
    dm_zk_add_op(&zk->wire.out, type);
    dm_zk_add_path(zk, &zk->wire.out, "/epoch%s%s", *name ? "/" : "", name);
    if (type == DM_ZK_CREATE)
        add_making(zk, &zk->wire.out);
    else
        dm_jute_add_int(&zk->wire.out, -1);
}

/* Draws an epoch, unless somebody else has done so since we looked: then the node is there, or has a child. */
static void draw_epoch(struct dm_zk *zk)
{
    size_t at = begin(zk, DM_ZK_ITEM_DRAW, DM_ZK_MULTI);
    char drawn[DM_ZK_EPOCH_LENGTH + 1];
    uint64_t words[2];

    dm_ident_random(words, 2);
    snprintf(drawn, sizeof drawn, "%016" PRIx64 "%016" PRIx64, words[0], words[1]);
    if (zk->is_older)
        add_part(zk, DM_ZK_DELETE, zk->epoch);
    if (zk->has_empty_epoch)
        add_part(zk, DM_ZK_DELETE, "");
    if (!zk->is_older)
        add_part(zk, DM_ZK_CREATE, "");
    add_part(zk, DM_ZK_CREATE, drawn);
    dm_zk_add_end(&zk->wire.out);
    end(zk, at);
}

/* ---- answers ------------------------------------------------------------------------------- */

/* A session whose number is 0 has ended before it began. */
void dm_zk_take_session(struct dm_zk *zk, struct dm_jute *answer)
{
    int32_t version = dm_jute_int(answer), ms = dm_jute_int(answer);
    int64_t number = dm_jute_long(answer);

    if (answer->is_bad || version != 0) {
        dm_zk_doom(zk, false, "what answers there is no ZooKeeper");
        return;
    }
    if (ms <= 0 || number == 0) {
        dm_zk_doom(zk, false, "ZooKeeper gives no session");
        return;
    }
    zk->session_ms = ms;
    zk->rounds = 0;
    zk->is_denied = false;
    if (zk->url->user && !dm_zk_log_in(&zk->wire, zk->url->user, zk->url->password ? zk->url->password : ""))
        dm_zk_doom(zk, false, "out of memory");
    ask(zk);
}

void dm_zk_take_login(struct dm_zk *zk, int error)
{
    if (error)
        dm_zk_doom(zk, true, "ZooKeeper refuses the login (error %d): are digest logins switched off?", error);
}

static void refuse_rights(struct dm_zk *zk)
{
    if (zk->url->user)
        dm_zk_doom(zk, true, "ZooKeeper's ACLs give this login no right to /%s: use that of the nodes' creator",
                   zk->url->prefix);
    else
        dm_zk_doom(zk, true, "ZooKeeper's ACLs give nobody a right to /%s: write user and password into the URL",
                   zk->url->prefix);
}

/* What is committed is never taken back, so a lower number is that of older data. */
static void note_data(struct dm_zk *zk, int64_t zxid)
{
    if (strcmp(zk->epoch, zk->data) != 0) {
        memcpy(zk->data, zk->epoch, sizeof zk->data);
        zk->zxid = 0;
    }
    zk->is_older = zxid < zk->zxid;
    if (!zk->is_older)
        zk->zxid = zxid;
}

static void take_epoch(struct dm_zk *zk, int64_t zxid, struct dm_jute *answer)
{
    int32_t count = dm_jute_int(answer);
    size_t size = 0;
    const char *name = count > 0 ? dm_jute_bytes(answer, &size) : "";

    if (answer->is_bad) {
        dm_zk_doom(zk, false, DM_ZK_NOT_WHOLE);
        return;
    }
    zk->has_empty_epoch = count == 0;
    if (count == 0)
        return;
    memset(zk->epoch, 0, sizeof zk->epoch);
    memcpy(zk->epoch, name, size < sizeof zk->epoch ? size : sizeof zk->epoch - 1);
    if (count != 1 || size != DM_ZK_EPOCH_LENGTH || strspn(zk->epoch, "0123456789abcdef") != DM_ZK_EPOCH_LENGTH)
        dm_zk_doom(zk, true,
                   "the node /%s/epoch has been changed by hand: it must have one child, of 32 hexadecimal digits",
                   zk->url->prefix);
    else
        note_data(zk, zxid);
}

static void be_ready(struct dm_zk *zk)
{
    zk->phase = DM_ZK_READY;
    zk->retry.ready_ns = dm_clock_boot_ns();
    zk->client.on_ready(zk->client.user, zk->epoch);
    zk->client.on_inbox(zk->client.user, true);
}

/* All has been answered: it may be that nodes are missing, or the epoch. */
static void go_on(struct dm_zk *zk)
{
    bool must_draw = zk->lacks_epoch || zk->has_empty_epoch || zk->is_older;

    if (!must_draw && !zk->lacks_nodes) {
        be_ready(zk);
        return;
    }
    if (zk->is_denied) {
        refuse_rights(zk);
        return;
    }
    if (++zk->rounds > ROUNDS_MOST) {
        dm_zk_doom(zk, false, "ZooKeeper does not keep the nodes below /%s", zk->url->prefix);
        return;
    }
    if (zk->lacks_nodes || zk->lacks_epoch) {
        make(zk, "");
        make(zk, "/r");
        make(zk, "/i");
    }
    if (must_draw)
        draw_epoch(zk);
    ask(zk);
}

/* Whether the answer is one that we know. */
static bool is_expected(int kind, int error)
{
    if (!error || error == DM_ZK_NO_RIGHT)
        return true;
    return kind == DM_ZK_ITEM_MAKE ? error == DM_ZK_NODE_EXISTS || error == DM_ZK_NO_NODE
                                   : (kind == DM_ZK_ITEM_EPOCH || kind == DM_ZK_ITEM_LOOK) && error == DM_ZK_NO_NODE;
}

static void take_error(struct dm_zk *zk, int kind, int error)
{
    if (error == DM_ZK_OVER_QUOTA)
        dm_zk_doom(zk, true, "ZooKeeper cannot begin to keep locks: the quota of /%s is used up", zk->url->prefix);
    else if (kind == DM_ZK_ITEM_HEAR && error == DM_ZK_UNIMPLEMENTED)
        dm_zk_doom(zk, true, "this ZooKeeper is older than 3.6: it has no watches that stay");
    else
        dm_zk_doom(zk, false, "ZooKeeper says: error %d", error);
}

void dm_zk_take_greeting(struct dm_zk *zk, const struct dm_zk_item *item, int error, int64_t zxid,
                         struct dm_jute *answer)
{
    if (item->kind == DM_ZK_ITEM_DRAW && !error)
        error = dm_zk_read_multi(answer).error;
    if (item->kind == DM_ZK_ITEM_DRAW && error != DM_ZK_NO_RIGHT && error != DM_ZK_OVER_QUOTA)
        return; /* whoever has come before us: we look again */
    if (!is_expected(item->kind, error)) {
        take_error(zk, item->kind, error);
        return;
    }
    switch (item->kind) {
    case DM_ZK_ITEM_MAKE:
    case DM_ZK_ITEM_DRAW:
        zk->is_denied |= error == DM_ZK_NO_RIGHT;
        break;
    case DM_ZK_ITEM_EPOCH:
        zk->lacks_epoch = error == DM_ZK_NO_NODE;
        if (error == DM_ZK_NO_RIGHT)
            refuse_rights(zk);
        else if (!error)
            take_epoch(zk, zxid, answer);
        break;
    case DM_ZK_ITEM_LOOK:
        zk->lacks_nodes |= error != 0;
        break;
    case DM_ZK_ITEM_HEAR:
        if (!zk->is_doomed)
            go_on(zk);
        break;
    default:
        break;
    }
}
