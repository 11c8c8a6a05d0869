/* SPDX-License-Identifier: BSD-2-Clause */
#include "trio.h"

#include <stdio.h>
#include <string.h>

struct server *trio[TRIO];
struct actor *trio_holder, *trio_waiter;

const char *trio_url(const char *options)
{
    static char url[256];

    snprintf(url, sizeof url, "redis+quorum://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d%s", trio[0]->port, trio[1]->port,
             trio[2]->port, options);
    return url;
}

int trio_begin_group(void **state)
{
    (void)state;
    for (int i = 0; i < TRIO; i++)
        trio[i] = server_start_with(true, NULL);
    the_server = trio[0];
    return 0;
}

int trio_end_group(void **state)
{
    (void)state;
    for (int i = 0; i < TRIO; i++)
        server_end(trio[i]);
    return 0;
}

static int begin_test(const char *options)
{
    trio_holder = actor_start_at(trio_url(options));
    trio_waiter = actor_start_at(trio_url(options));
    return 0;
}

int trio_begin_test(void **state)
{
    (void)state;
    return begin_test("?grace=off&" TIMES);
}

int trio_begin_count(void **state)
{
    (void)state;
    return begin_test("?grace=off&command_timeout=20000&connect_timeout=20000");
}

int trio_end_test(void **state)
{
    (void)state;
    actor_end(trio_holder);
    actor_end(trio_waiter);
    return 0;
}

bool trio_has(int server, const char *kind, const char *name)
{
    return side_says(trio[server]->side, "1", "EXISTS %s", key_of(kind, name));
}

int trio_waiters(const char *name)
{
    int count = 0;

    for (int i = 0; i < TRIO; i++)
        count += trio[i]->pid && waiters_at(trio[i]->side, name) > 0;
    return count;
}

int trio_count(const char *kind, const char *name)
{
    int count = 0;

    for (int i = 0; i < TRIO; i++)
        count += trio[i]->pid && trio_has(i, kind, name);
    return count;
}

void trio_lock_in_turns(const char *name, int times)
{
    for (int i = 0; i < times; i++) {
        struct actor *actor = i % 2 ? trio_holder : trio_waiter;

        actor_do(actor, "0", "lock %s", name);
        actor_do(actor, "0", "unlock %s", name);
    }
}

void trio_init(const char *name)
{
    actor_do(trio_holder, "0", "init %s lease=%d fair", name, LEASE);
    actor_do(trio_waiter, "0", "init %s lease=%d fair", name, LEASE);
}

bool trio_has_one_hold(const char *name)
{
    char first[100] = "";
    int alike = 0;

    for (int i = 0; i < TRIO; i++) {
        const char *text = side_text(trio[i]->side, "HGET %s hold", key_of("state", name)), *hold = text ? text : "";

        if (i == 0)
            snprintf(first, sizeof first, "%.*s", (int)strcspn(hold, " "), hold);
        alike += *hold && *hold != '-' && strncmp(hold, first, strcspn(hold, " ")) == 0;
    }
    return alike == TRIO;
}
