/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The library's own Lua scripts, as embedded into the library, on a simulated store: run by the
 * same Lua 5.1 that servers use, with `redis.call`, `redis.pcall` and `redis.error_reply`.
 */
#ifndef SIM_SCRIPTING_H
#define SIM_SCRIPTING_H

#include "store.h"

struct scripting; /* an interpreter with all scripts compiled */

/* Changes a line of one script, wherever the line is: a negative control breaks a script on purpose. */
struct mutation {
    const char *script; /* "acquire"; NULL ends a list */
    const char *old, *new;
};

/* NULL: the scripts unchanged.  A mutation without the old text in the script is a bug: aborts. */
struct scripting *scripting_new(const struct mutation *mutations);
void scripting_free(struct scripting *scripting);

/* The data and the server that a run works on. */
struct site {
    struct store *store;
    int64_t now_us;   /* the server's clock */
    const char *info; /* the text of INFO */
    bool is_node;     /* of a Cluster: the scripts have the guard, and messages are sharded */
    int (*publish)(void *user, struct text channel, struct text message);
    int (*subscribers)(void *user, struct text channel);             /* of the server, by the channel's own name */
    bool (*is_here)(void *user, const struct text *keys, int count); /* of a node: false refuses the command */
    void *user;
};

/* The embedded scripts by number, so that a server can note the known scripts.  -1: no embedded script. */
#define SCRIPTS_MAX 16
int scripting_by_sha(struct text sha);
int scripting_by_text(struct text text);
const char *scripting_name(int script);

/* "#!lua" without "allow-oom": refused while the server is out of memory. */
bool scripting_needs_memory(int script);

/* Bytes being written. */
struct bytes {
    char *data;
    size_t length, room;
};
void bytes_add(struct bytes *bytes, const char *data, size_t length);
void bytes_print(struct bytes *bytes, const char *format, ...) __attribute__((__format__(__printf__, 2, 3)));

/* Runs a script; the reply, in the wire's format, goes to `reply`. */
void scripting_run(struct scripting *scripting, int script, const struct site *site, const struct text *keys,
                   int key_count, const struct text *arguments, int argument_count, struct bytes *reply);

/* The same for any text. */
void scripting_eval(struct scripting *scripting, const char *text, const struct site *site, const struct text *keys,
                    int key_count, const struct text *arguments, int argument_count, struct bytes *reply);

#endif
