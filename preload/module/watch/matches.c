/* SPDX-License-Identifier: BSD-2-Clause */
#include "matches.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/shm.h>
#include <unistd.h>

#include "module/base/settings.h"
#include "shared/text.h"
#include "shared/used.h"

static struct used *used; /* NULL: nobody wants to know */

static struct used *attach(int id, const char *cookie)
{
    struct shmid_ds status;
    struct used *found = shmat(id, NULL, 0);
    bool is_ours;

    if (found == (void *)-1)
        return NULL;
    is_ours = shmctl(id, IPC_STAT, &status) == 0 && status.shm_segsz >= sizeof *found &&
              strncmp(found->cookie, cookie, sizeof found->cookie) == 0 &&
              found->count <= status.shm_segsz - sizeof *found;
    if (is_ours)
        return found;
    shmdt(found);
    return NULL;
}

/* Marks the memory for removal once the command has attached it; the last process that detaches removes it. */
void matches_begin(void)
{
    const char *variable = secure_getenv(USED_VARIABLE), *cookie = variable ? strchr(variable, ' ') : NULL;
    int error = errno, id;

    if (!cookie)
        return;
    id = atoi(variable);
    used = attach(id, cookie + 1);
    if (used && used->owner == getpid())
        shmctl(id, IPC_RMID, NULL);
    errno = error;
}

void matches_note(const struct rule *rule)
{
    if (used && rule->number < used->count)
        __atomic_store_n(&used->marks[rule->number], USED_YES, __ATOMIC_RELAXED);
}

static bool is_any_used(void)
{
    for (uint32_t i = 0; i < used->count; i++)
        if (used->marks[i] == USED_YES)
            return true;
    return false;
}

/* consequence: what follows besides the rule having no effect, or "". */
static void say_rule(const struct rule *rule, const char *consequence)
{
    char room[512];
    struct text words = text_in(room, sizeof room);

    rules_write(rule, &words);
    text_say("the rule ", room, " => ", rule->name, " has matched nothing", consequence,
             ": dmutex-run --list shows what the program uses", NULL);
}

static void say_that_none_is_used(const struct settings *settings)
{
    if (settings->count == 1)
        say_rule(&settings->rules[0], ", so nothing was distributed");
    else
        text_say("no rule has matched anything, so nothing was distributed: dmutex-run --list shows what the program "
                 "uses",
                 NULL);
}

__attribute__((destructor)) static void say_unused(void)
{
    const struct settings *settings = settings_get();

    if (!used || used->owner != getpid())
        return;
    if (!is_any_used()) {
        say_that_none_is_used(settings);
        return;
    }
    for (int i = 0; i < settings->count; i++)
        if (settings->rules[i].number < used->count && used->marks[settings->rules[i].number] == USED_NOT_THOUGH)
            say_rule(&settings->rules[i], "");
}
