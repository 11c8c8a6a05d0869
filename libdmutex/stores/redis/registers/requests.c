/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests as commands, and what their replies mean.
 *
 * An error of the server means that the command was not executed: each script looks first, and writes last.  So a
 * request with such a reply may be sent again; one without a reply may not, because it may be executed at any time.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ident.h"
#include "stores/redis/registers/parts.h"
#include "stores/redis/registers/scripts.h"

/* ---- memory ------------------------------------------------------------------------------- */

static char *join(const char *one, const char *other)
{
    size_t room = strlen(one) + strlen(other) + 1;
    char *text = malloc(room);

    if (text)
        snprintf(text, room, "%s%s", one, other);
    return text;
}

/*
 * In a Cluster a script publishes only in the slot of its keys.  Else the channel is below the prefix for which users
 * have rights.
 */
char *dm_rr_channel(const struct dm_rr *rr, const char *inbox)
{
    size_t room = strlen(rr->url->prefix) + strlen(inbox) + sizeof DM_RR_TAG + sizeof "::inbox:";
    char *text = malloc(room);

    if (text)
        snprintf(text, room, rr->is_clustered ? "%s:" DM_RR_TAG ":inbox:%s" : "%s:inbox:~registers:%s", rr->url->prefix,
                 inbox);
    return text;
}

/* The inbox of a process takes messages as texts. */
static char *write_tell(const void *bytes, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *from = bytes;
    char *text = malloc(2 * size + 1);

    for (size_t i = 0; text && i < size; i++) {
        text[2 * i] = digits[from[i] >> 4];
        text[2 * i + 1] = digits[from[i] & 15];
    }
    if (text)
        text[2 * size] = '\0';
    return text;
}

static int digit_of(char digit)
{
    return digit >= '0' && digit <= '9' ? digit - '0' : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

bool dm_rr_read_tell(const char *text, uint8_t *ret_bytes, size_t room, size_t *ret_size)
{
    size_t length = strlen(text);

    if (length % 2 || length / 2 > room)
        return false;
    for (size_t i = 0; i < length / 2; i++) {
        int high = digit_of(text[2 * i]), low = digit_of(text[2 * i + 1]);

        if (high < 0 || low < 0)
            return false;
        ret_bytes[i] = (uint8_t)(high << 4 | low);
    }
    *ret_size = length / 2;
    return true;
}

static bool copy_tells(struct dm_rr_request *request, const struct dm_reg_item *item)
{
    if (item->tell_count == 0)
        return true;
    request->tells = calloc((size_t)item->tell_count, sizeof *request->tells);
    if (!request->tells)
        return false;
    request->tell_count = item->tell_count;
    for (int i = 0; i < item->tell_count; i++) {
        struct dm_rr_told *told = &request->tells[i];

        told->channel = dm_rr_channel(request->rr, item->tells[i].inbox);
        told->text = write_tell(item->tells[i].text, item->tells[i].size);
        if (!told->channel || !told->text)
            return false;
    }
    return true;
}

static bool copy_item(struct dm_rr_request *request, const struct dm_reg_item *item)
{
    request->version = item->version;
    request->key = join(request->rr->prefix, item->key);
    if (!request->key || request->kind != DM_RR_SWAP)
        return request->key != NULL;
    request->size = item->size;
    request->value = malloc(item->size + 1);
    if (request->value && item->size)
        memcpy(request->value, item->value, item->size);
    return request->value && copy_tells(request, item);
}

struct dm_rr_request *dm_rr_request_new(struct dm_rr *rr, enum dm_rr_kind kind, uint64_t ticket, int index,
                                        const struct dm_reg_item *item)
{
    struct dm_rr_request *request = calloc(1, sizeof *request);

    if (!request)
        return NULL;
    request->rr = rr;
    request->kind = kind;
    request->ticket = ticket;
    request->index = index;
    request->until_ns = dm_clock_boot_ns() + rr->url->command_timeout_ms * DM_NS_PER_MS;
    if (!item || copy_item(request, item))
        return request;
    dm_rr_request_free(request);
    return NULL;
}

static void forget_reply(struct dm_rr_request *request)
{
    free((void *)request->reply.value);
    free(request->text);
    request->reply = (struct dm_reg_reply){ .age_ms = -1 };
    request->text = NULL;
    request->is_redirect = request->is_distrusted = false;
}

void dm_rr_request_free(struct dm_rr_request *request)
{
    for (int i = 0; i < request->tell_count; i++) {
        free(request->tells[i].channel);
        free(request->tells[i].text);
    }
    if (request->list)
        dm_rr_list_free(request->list);
    forget_reply(request);
    free(request->tells);
    free(request->value);
    free(request->key);
    free(request);
}

/* ---- writing ------------------------------------------------------------------------------ */

static const struct {
    const char *sha, *text, *cluster_sha, *cluster_text;
} scripts[] = {
    [DM_RR_SCRIPT_READ] = { dm_sha_register_read, dm_lua_register_read, dm_sha_register_read_cluster,
                            dm_lua_register_read_cluster },
    [DM_RR_SCRIPT_SWAP] = { dm_sha_register_swap, dm_lua_register_swap, dm_sha_register_swap_cluster,
                            dm_lua_register_swap_cluster },
    [DM_RR_SCRIPT_FULL] = { dm_sha_register_swap_full, dm_lua_register_swap_full, dm_sha_register_swap_full_cluster,
                            dm_lua_register_swap_full_cluster },
};

/* The text goes to a server that does not know the script, or may be new. */
static void write_script(struct dm_rr_request *request, enum dm_rr_script script, struct dm_args *args)
{
    struct dm_rr *rr = request->rr;
    bool is_text = request->is_text || !rr->knows[script];

    rr->knows[script] = true;
    dm_args_text(args, is_text ? "EVAL" : "EVALSHA");
    if (is_text)
        dm_args_text(args, rr->is_clustered ? scripts[script].cluster_text : scripts[script].text);
    else
        dm_args_text(args, rr->is_clustered ? scripts[script].cluster_sha : scripts[script].sha);
    dm_args_text(args, "2");
    dm_args_text(args, request->key);
    dm_args_text(args, rr->epoch_key);
    dm_args_text(args, rr->epoch);
}

static void write_version(const struct dm_reg_version *version, struct dm_args *args)
{
    dm_args_bytes(args, (const char *)version->bytes, dm_reg_version_is_absent(version) ? 0 : DM_REG_VERSION_SIZE);
}

static bool write_read(struct dm_rr_request *request, struct dm_args *args)
{
    if (dm_args_init(args, 7, 0) < 0)
        return false;
    write_script(request, DM_RR_SCRIPT_READ, args);
    write_version(&request->version, args);
    return true;
}

static bool write_swap(struct dm_rr_request *request, struct dm_args *args)
{
    size_t version_size = request->size ? DM_REG_VERSION_SIZE : 0;

    if (dm_args_init(args, 9 + 2 * request->tell_count, 0) < 0)
        return false;
    write_script(request, request->is_full ? DM_RR_SCRIPT_FULL : DM_RR_SCRIPT_SWAP, args);
    write_version(&request->version, args);
    dm_args_bytes(args, request->value, version_size);
    dm_args_bytes(args, (const char *)request->value + version_size, request->size - version_size);
    for (int i = 0; i < request->tell_count; i++) {
        dm_args_text(args, request->tells[i].channel);
        dm_args_text(args, request->tells[i].text);
    }
    return true;
}

/* By text: once for each connection.  `room` holds the random id until the command is formatted. */
static bool write_epoch(struct dm_rr_request *request, struct dm_args *args, char room[DM_RR_EPOCH_DIGITS + 1])
{
    struct dm_rr *rr = request->rr;
    struct dm_master_watch *watch = rr->home->master_watch;
    char reason[DM_REASON_ROOM];
    struct dm_master master;
    uint64_t number, random[2];

    if (watch && dm_master_watch_find(watch, &master, &number, reason) != DM_MASTER_FOUND)
        return false;
    if (dm_args_init(args, 6, 1) < 0)
        return false;
    dm_ident_random(random, 2);
    snprintf(room, DM_RR_EPOCH_DIGITS + 1, "%016" PRIx64 "%016" PRIx64, random[0], random[1]);
    dm_args_text(args, "EVAL");
    dm_args_text(args, rr->is_clustered ? dm_lua_register_epoch_cluster : dm_lua_register_epoch);
    dm_args_text(args, "1");
    dm_args_text(args, rr->epoch_key);
    dm_args_text(args, room);
    if (watch)
        dm_args_number(args, master.epoch);
    else
        dm_args_text(args, "");
    return true;
}

static bool write_request(struct dm_rr_request *request, struct dm_args *args, char room[DM_RR_EPOCH_DIGITS + 1])
{
    switch (request->kind) {
    case DM_RR_EPOCH:
        return write_epoch(request, args, room);
    case DM_RR_READ:
        return write_read(request, args);
    case DM_RR_SWAP:
        return write_swap(request, args);
    case DM_RR_LIST:
        return dm_rr_list_write(request->list, args);
    }
    return false;
}

/* ---- reading ------------------------------------------------------------------------------ */

/* A reply that is none of the script's: another program answers, or a script of another version. */
static void take_nonsense(struct dm_rr_request *request)
{
    request->reply.outcome = DM_REG_REFUSED;
    request->text = strdup("the server's answer is not one of ours: is this a Redis server?");
}

/* The value at two elements: its version, and the rest.  False: they are none of ours, or there is no memory. */
static bool take_value(struct dm_rr_request *request, const redisReply *reply)
{
    const redisReply *version, *rest;
    uint8_t *value;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 5)
        return false;
    version = reply->element[3];
    rest = reply->element[4];
    if (version->type != REDIS_REPLY_STRING || rest->type != REDIS_REPLY_STRING)
        return false;
    request->reply.has_value = true;
    if (version->len == 0)
        return true;
    value = version->len == DM_REG_VERSION_SIZE ? malloc(DM_REG_VERSION_SIZE + rest->len) : NULL;
    request->reply.has_value = value != NULL;
    if (!value)
        return false;
    memcpy(value, version->str, DM_REG_VERSION_SIZE);
    memcpy(value + DM_REG_VERSION_SIZE, rest->str, rest->len);
    memcpy(request->reply.version.bytes, value, DM_REG_VERSION_SIZE);
    request->reply.value = value;
    request->reply.size = DM_REG_VERSION_SIZE + rest->len;
    return true;
}

/* The server's clock, and an age if there is one. */
static void take_times(struct dm_rr_request *request, const redisReply *reply)
{
    uint64_t number;

    if (dm_reply_number(reply, 1, &number) && number < INT64_MAX)
        request->reply.clock_us = (int64_t)number;
    if (dm_reply_number(reply, 2, &number) && number < INT64_MAX)
        request->reply.age_ms = (int64_t)number;
}

static void take_answer(struct dm_rr_request *request, const redisReply *reply)
{
    bool is_swap = request->kind == DM_RR_SWAP;

    take_times(request, reply);
    if (dm_reply_is(reply, "other")) {
        request->meaning = DM_RR_OTHER;
    } else if (is_swap && dm_reply_is(reply, "done")) {
        request->reply.outcome = DM_REG_DONE;
        if (request->size)
            memcpy(request->reply.version.bytes, request->value, DM_REG_VERSION_SIZE);
    } else if (is_swap && dm_reply_is(reply, "conflict")) {
        request->reply.outcome = DM_REG_CONFLICT;
        take_value(request, reply);
    } else if (!is_swap && dm_reply_is(reply, "same")) {
        request->reply.outcome = DM_REG_SAME;
        request->reply.version = request->version;
    } else if (!is_swap && dm_reply_is(reply, "value") && take_value(request, reply)) {
        request->reply.outcome = DM_REG_DONE;
    } else {
        take_nonsense(request);
    }
}

static void take_epoch(struct dm_rr_request *request, const redisReply *reply)
{
    bool is_epoch = reply->type == REDIS_REPLY_STRING && reply->len == DM_RR_EPOCH_DIGITS &&
                    strspn(reply->str, "0123456789abcdef") == DM_RR_EPOCH_DIGITS;

    request->reply.outcome = DM_REG_DONE;
    if (is_epoch)
        request->text = strdup(reply->str);
    else
        take_nonsense(request);
}

static void take_keys(struct dm_rr_request *request, const redisReply *reply)
{
    request->reply.outcome = DM_REG_DONE;
    if (!dm_rr_list_take(request->list, reply))
        take_nonsense(request);
    else if (!request->list->is_over)
        request->meaning = DM_RR_REPEAT;
    else
        dm_rr_list_end(request->list);
}

/* Another program has written the key. */
static char *explain(const struct dm_rr_request *request, const redisReply *error)
{
    char text[DM_REG_REASON_ROOM];

    if (strncmp(error->str, "WRONGTYPE", 9) == 0)
        snprintf(text, sizeof text,
                 "%.200s, or %.100s, is not the library's: find out who writes it, and delete it (WRONGTYPE)",
                 request->key ?: "a key", request->rr->epoch_key);
    else
        snprintf(text, sizeof text, "%.300s", error->str);
    return strdup(text);
}

static void take_full(struct dm_rr_request *request)
{
    bool may_fit = request->kind == DM_RR_SWAP && !request->is_full && !dm_reg_version_is_absent(&request->version);

    request->reply.outcome = DM_REG_REFUSED;
    if (may_fit)
        request->meaning = DM_RR_REPEAT;
    else
        request->text = strdup("the server's memory is full: raise maxmemory, or delete what is not needed (OOM)");
    request->is_full = true;
}

static void take_error(struct dm_rr_request *request, const redisReply *error)
{
    bool is_moved = strncmp(error->str, "MOVED ", 6) == 0 || strncmp(error->str, "ASK ", 4) == 0;

    if (request->rr->is_clustered && is_moved) {
        request->is_redirect = true;
        request->text = strdup(error->str);
        request->meaning = request->text ? DM_RR_REPEAT : DM_RR_LOST;
        return;
    }
    switch (dm_reply_row(error)) {
    case DM_ROW_SCRIPT:
        request->is_text = true;
        request->meaning = DM_RR_REPEAT;
        break;
    case DM_ROW_RETRY:
        request->text = explain(request, error);
        request->meaning = DM_RR_WAIT;
        break;
    case DM_ROW_REDISCOVER:
        request->text = explain(request, error);
        request->is_distrusted = true;
        request->meaning = DM_RR_LOST;
        break;
    case DM_ROW_NO_MEMORY:
        take_full(request);
        break;
    case DM_ROW_REFUSED:
    case DM_ROW_NONE:
        request->reply.outcome = DM_REG_REFUSED;
        request->text = explain(request, error);
        break;
    }
}

/* A dm_reply_fn: see the head of parts.h. */
static void answered(void *user, const redisReply *reply)
{
    struct dm_rr_request *request = user;

    forget_reply(request);
    request->meaning = DM_RR_ANSWERED;
    if (!reply)
        request->meaning = DM_RR_LOST;
    else if (reply->type == REDIS_REPLY_ERROR)
        take_error(request, reply);
    else if (request->kind == DM_RR_EPOCH)
        take_epoch(request, reply);
    else if (request->kind == DM_RR_LIST)
        take_keys(request, reply);
    else
        take_answer(request, reply);
    dm_rr_push(request->rr, &request->arrival);
}

bool dm_rr_send(struct dm_rr_request *request)
{
    struct dm_rr *rr = request->rr;
    char room[DM_RR_EPOCH_DIGITS + 1];
    enum dm_link_result result = DM_LINK_DOWN;
    struct dm_args args;

    if (!write_request(request, &args, room))
        return false;
    request->node = request->kind == DM_RR_LIST ? rr->home : dm_route_of_args(&rr->route, &args);
    if (request->node)
        result = dm_node_post(request->node, &args, answered, request);
    if (result == DM_LINK_DOWN)
        dm_route_wish(&rr->route, request->node);
    dm_args_free(&args);
    request->is_under_way = result == DM_LINK_OK;
    return request->is_under_way;
}
