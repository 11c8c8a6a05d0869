/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What process.c and test_store.c need of memory.h, on a real server: the same tests then run on the driver of Redis.
 * Of the faults there is one: notices that get lost, on their last way.
 */
#include "redisbed.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "memory.h"

#define KEYS "dmutex:{~registers}:register:"

struct memory {
    struct server *server;
    struct dm_url *url;
    struct memory_faults faults;
    int64_t (*now_ns)(void); /* the server's clock, if the test sets it forward */
};

/* Before main(): test_store.c does not know that it needs a server. */
__attribute__((constructor)) static void begin_program(int argc, char **argv)
{
    test_begin(argc, argv);
}

/* One store at a time; all its clients have the same function. */
static struct memory the_memory;
static void (*on_tell)(void *user, const void *text, size_t size);

static void tell_unless_lost(void *user, const void *text, size_t size)
{
    if (!the_memory.faults.tell_lost)
        on_tell(user, text, size);
}

static void (*on_reply)(void *user, uint64_t ticket, int index, const struct dm_reg_reply *reply);

/* A clock that is set forward makes values older. */
static void show_age(void *user, uint64_t ticket, int index, const struct dm_reg_reply *reply)
{
    struct dm_reg_reply shown = *reply;

    if (shown.age_ms >= 0 && the_memory.now_ns)
        shown.age_ms += (the_memory.now_ns() - dm_clock_boot_ns()) / DM_NS_PER_MS;
    if (the_memory.faults.has_no_ages)
        shown.age_ms = -1;
    on_reply(user, ticket, index, &shown);
}

struct memory *memory_new(const struct memory_world *world)
{
    the_memory = (struct memory){ .server = server_start(), .now_ns = world ? world->now_ns : NULL };
    the_memory.url = redisbed_url(the_memory.server->url);
    return &the_memory;
}

/* A link that has ended may still be about to use the URL. */
void memory_free(struct memory *memory)
{
    server_end(memory->server);
}

struct server *memory_server(struct memory *memory)
{
    return memory->server;
}

struct memory_faults *memory_faults(struct memory *memory)
{
    return &memory->faults;
}

struct dm_reg_driver *memory_open(struct memory *memory, const struct dm_reg_client *client)
{
    struct dm_reg_client listener = *client;

    on_tell = client->on_tell;
    listener.on_tell = tell_unless_lost;
    on_reply = client->on_reply;
    listener.on_reply = show_age;
    return redisbed_open(memory->url, &listener);
}

void memory_cut(struct memory *memory, struct dm_reg_driver *driver)
{
    assert_null(driver);
    redisbed_cut(memory->server);
}

void memory_put(struct memory *memory, const char *key, const void *value, size_t size)
{
    const char *bytes = value;

    assert_true(size >= DM_REG_VERSION_SIZE);
    side_int(memory->server->side, "HSET " KEYS "%s version %b data %b", key, bytes, (size_t)DM_REG_VERSION_SIZE,
             bytes + DM_REG_VERSION_SIZE, size - DM_REG_VERSION_SIZE);
}

/* Without the values, which nobody asks for. */
void memory_each(struct memory *memory, void (*handler)(void *user, const char *key, const void *value, size_t size),
                 void *user)
{
    char *keys = strdup(side_keys(memory->server->side)), *rest = keys, *key;

    while ((key = strsep(&rest, "\n"))) {
        if (strncmp(key, KEYS, strlen(KEYS)) == 0)
            handler(user, key + strlen(KEYS), "", 0);
    }
    free(keys);
}
