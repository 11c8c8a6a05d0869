/* SPDX-License-Identifier: BSD-2-Clause */
#include "mark.h"

#include <string.h>
#include <sys/random.h>
#include <sys/shm.h>
#include <unistd.h>

#include "shared/used.h"

static void write_cookie(char cookie[USED_COOKIE_ROOM])
{
    unsigned char bytes[(USED_COOKIE_ROOM - 1) / 2] = { 0 };

    if (getrandom(bytes, sizeof bytes, GRND_NONBLOCK) < 0)
        memcpy(bytes, &(gint64){ g_get_real_time() }, sizeof(gint64)); /* early at boot; enough against accidents */
    for (size_t i = 0; i < sizeof bytes; i++)
        g_snprintf(cookie + 2 * i, 3, "%02x", bytes[i]);
}

/*
 * The owner is this process, because the command keeps its pid across execve(). A rule written for this very command is
 * worth a warning even without Required=yes.
 */
static void fill_in(struct used *used, const struct plan *plan)
{
    write_cookie(used->cookie);
    used->owner = getpid();
    used->count = plan_count(plan);
    for (unsigned i = 0; i < used->count; i++)
        used->marks[i] =
            i < plan->map->len || plan_at(plan, i)->rule.required == REQUIRED_YES ? USED_NOT_THOUGH : USED_NOT;
}

/*
 * No file and no descriptor: a killed command would leave a file, and programs close descriptors. Between shmdt() and
 * the command's start the memory is attached to no process; once the module has attached it, it marks it for removal
 * (shared/used.h). Without memory there is no warning of unmatched rules, and nothing else is lost.
 */
int mark_begin(const struct plan *plan, char ***environment)
{
    int id = shmget(IPC_PRIVATE, sizeof(struct used) + plan_count(plan), IPC_CREAT | 0600);
    struct used *used = id >= 0 ? shmat(id, NULL, 0) : (void *)-1;
    g_autofree char *value = NULL;

    if (used == (void *)-1) {
        mark_end(id);
        return -1;
    }
    fill_in(used, plan);
    value = g_strdup_printf("%d %s", id, used->cookie);
    *environment = g_environ_setenv(*environment, USED_VARIABLE, value, TRUE);
    shmdt(used);
    return id;
}

void mark_end(int id)
{
    if (id >= 0)
        shmctl(id, IPC_RMID, NULL);
}
