/* SPDX-License-Identifier: BSD-2-Clause */
/* dmutex token: the newest fencing token of a name, for resources that scripts protect. */
#include <inttypes.h>
#include <stdio.h>

#include "api/view.h"
#include "json.h"
#include "tool.h"

struct token {
    uint64_t number;
    bool is_faulty;
};

static void keep(void *user, const struct dm_seen *seen)
{
    *(struct token *)user = (struct token){ seen->info.shown.token << DM_TOKEN_SHIFT, seen->fault != NULL };
}

static int tell(const char *name, bool is_json)
{
    char key[DM_MUTEX_KEY_ROOM];
    struct token token = { 0 };

    snprintf(key, sizeof key, "n%s", name);
    if (dm_view_one(key, 0, keep, &token) != 0)
        return tool_failed(name);
    if (token.is_faulty)
        return tool_foreign(name);
    if (is_json) {
        struct json json = json_begin(stdout);

        json_open(&json, NULL, '{');
        json_name(&json, name);
        json_long(&json, "token", token.number);
        json_close(&json);
        json_end(&json);
    } else {
        printf("%" PRIu64 "\n", token.number);
    }
    return 0;
}

static int run(int argc, char **argv)
{
    bool is_json = false;
    int error = tool_only_name(argc, argv, &is_json);

    return error ? error : tell(argv[optind], is_json);
}

const struct subcommand subcommand_token = {
    .name = "token",
    .arguments = "[--json] NAME",
    .purpose = "print the newest fencing token of a lock; 0 if the server knows none",
    .options = "",
    .run = run,
};
