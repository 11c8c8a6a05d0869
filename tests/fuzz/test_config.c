/* SPDX-License-Identifier: BSD-2-Clause */
/* The configuration of dmutex-run: taken whole, or refused with file and section. */
#include <string.h>

#include "fuzz.h"
#include "run/config.h"
#include "run/config_files.h"
#include "run/refuse.h"

static const char *const seeds[] = {
    "[server]\nUrl=redis://h\n\n[defaults]\nLease=10s\nOnDown=block\n\n[lock g/l]\nMatch=sym:libm.so:lock\n",
    "[lock files]\nMatch=flock:/var/lock/*;fcntl:/srv/a\\;b\nShared=exclusive\nOnDown=local\nRequired=no\n",
    "# a comment\n[lock m]\nMatch=shm:/pool+64\nCond=shm:/pool+128;shm:/pool+256\nRobust=yes\nOnLost=signal:TERM\n",
    "[lock x]\nMatch = map:/srv/data+0x40 \nProgram=/usr/bin/x\nSharedState=yes\nLinger=5\n",
    NULL,
};

static const char *const words[] = {
    "[",          "]",       "\n",       "[lock ",    "[defaults]\n", "[server]\n",
    "Url=",       "Match=",  "Cond=",    "Lease=",    "Linger=",      "Robust=",
    "OnDown=",    "OnLost=", "Program=", "Required=", "SharedState=", "Shared=",
    "Match[de]=", ";",       "\\;",      "\\s",       "\\x",          "=",
    "#",          "%b",      "sym:a:b",  "flock:/x",  "cond:sym:a:c", "yes",
    "no",         "10s",     "\r\n",     NULL,
};

const struct fuzzer fuzzer = { "config", seeds, words, 10000, 1000000 };

static const char *file;

/* Replaces the function that reads a file and refuses a text that is not UTF-8. */
char *config_files_load(const char *path, GError **error)
{
    (void)path;
    if (g_utf8_validate(file, -1, NULL))
        return g_strdup(file);
    refuse(error, REFUSE_CONFIG, "no text");
    return NULL;
}

static void must_be_whole(struct plan *plan)
{
    char name[PLAN_NAME_ROOM];

    for (unsigned i = 0; i < plan_count(plan); i++) {
        const struct planned *planned = plan_at(plan, i);

        must(planned->rule.module && planned->rule.name && *planned->origin);
        must(plan_example_name(&planned->rule, name));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    g_autoptr(GPtrArray) paths = g_ptr_array_new();
    g_autoptr(GError) error = NULL;
    struct plan *plan = plan_new();

    file = fuzz_text(bytes, length);
    g_ptr_array_add(paths, (gpointer) "/etc/dmutex/preload.conf");
    if (config_read(plan, paths, &error))
        must_be_whole(plan);
    else
        must(error && *error->message);
    plan_free(plan);
    return 0;
}
