/* SPDX-License-Identifier: BSD-2-Clause */
#include "crowd.h"

#include <stdio.h>

#include "testlib.h"

void crowd_begin(struct crowd *crowd, struct server *server, const char *mutex, const char *cond, unsigned lease_ms)
{
    *crowd = (struct crowd){ .server = server, .mutex = mutex, .cond = cond };
    snprintf(crowd->file, sizeof crowd->file, "%s/crowd", server->folder);
    actor_begin_count(crowd->file);
    for (int i = 0; i < CROWD_PROCESSES; i++) {
        crowd->actors[i] = actor_start(server);
        actor_do(crowd->actors[i], "0", "init %s lease=%u", mutex, lease_ms);
    }
}

void crowd_end(struct crowd *crowd)
{
    for (int i = 0; i < CROWD_PROCESSES; i++)
        actor_end(crowd->actors[i]);
}

void crowd_gather(struct crowd *crowd, int count)
{
    int part = count / CROWD_PROCESSES;

    crowd->count = part * CROWD_PROCESSES;
    actor_begin_count(crowd->file);
    for (int i = 0; i < CROWD_PROCESSES; i++)
        actor_send(crowd->actors[i], "crowd %s %d %s %s", crowd->file, part, crowd->cond, crowd->mutex);
    wait_until(crowd_on_condition(crowd) == crowd->count);
    wait_until(side_int(crowd->server->side, "EXISTS %s", key_of("lock", crowd->mutex)) == 0);
}

int64_t crowd_on_condition(const struct crowd *crowd)
{
    return side_int(crowd->server->side, "ZCARD %s", key_of("cond", crowd->cond));
}

int64_t crowd_in_queue(const struct crowd *crowd)
{
    return waiters_at(crowd->server->side, crowd->mutex);
}

int64_t crowd_back(const struct crowd *crowd)
{
    return actor_counted(crowd->file);
}

void crowd_await_return(struct crowd *crowd)
{
    for (int i = 0; i < CROWD_PROCESSES; i++)
        assert_string_equal(actor_answer_of_count(crowd->actors[i], crowd->file), "0");
    assert_int_equal(crowd_back(crowd), crowd->count);
    assert_int_equal(crowd_on_condition(crowd), 0);
    assert_int_equal(crowd_in_queue(crowd), 0);
}
