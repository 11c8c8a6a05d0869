/* SPDX-License-Identifier: BSD-2-Clause */
/* dmutex local: starts, stops and shows the private server of this user on this machine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <dmutex/dmutex.h>

#include "base/clock.h"
#include "json.h"
#include "probe.h"
#include "say.h"
#include "spawn/local.h"
#include "tool.h"

struct local {
    struct dm_url *url;
    bool is_running;
    char reason[DM_REASON_ROOM]; /* why it cannot be used */
    char pid[20], version[40];   /* as the server says; "" */
};

/* Resolves the URL as every program does for local:, so that the same variables find the same server. */
static int find(struct local *ret_local)
{
    char reason[DM_REASON_ROOM];

    *ret_local = (struct local){ .url = dm_url_parse("local:", reason) };
    if (ret_local->url && dm_local_place(ret_local->url, reason))
        return 0;
    say("%s", reason);
    return TOOL_CONFIG;
}

static bool is_listening(struct local *local, bool may_start)
{
    int fd = dm_local_open(local->url, may_start, local->reason);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static void copy_value(const char *info, const char *key, char *ret_value, size_t room)
{
    const char *at = strstr(info, key);

    if (at)
        snprintf(ret_value, room, "%.*s", (int)strcspn(at + strlen(key), "\r\n"), at + strlen(key));
    dm_text_clean(ret_value);
}

/* Asks whether the server answers, and for its process and version. */
static void look(struct local *local)
{
    struct probe *probe = probe_new(local->url);
    redisReply *reply = NULL;

    if (probe && is_listening(local, false) && probe_connect(probe, local->reason))
        reply = probe_ask(probe, (const char *const[]){ "INFO", "server", NULL }, local->reason);
    local->is_running = reply && reply->type == REDIS_REPLY_STRING;
    if (local->is_running) {
        copy_value(reply->str, "\nprocess_id:", local->pid, sizeof local->pid);
        copy_value(reply->str, "\nredis_version:", local->version, sizeof local->version);
    }
    if (reply)
        dm_reply_free(reply);
}

static int print(const struct local *local, bool is_json)
{
    if (is_json) {
        struct json json = json_begin(stdout);

        json_open(&json, NULL, '{');
        json_bool(&json, "running", local->is_running);
        json_text(&json, "socket", local->url->path);
        if (local->is_running) {
            json_number(&json, "pid", atoll(local->pid));
            json_text(&json, "version", local->version);
        }
        json_close(&json);
        json_end(&json);
    } else if (local->is_running) {
        printf("running at %s: process %s, Redis %s\n", local->url->path, local->pid, local->version);
    } else {
        printf("not running at %s\n", local->url->path);
    }
    return local->is_running ? 0 : TOOL_NO;
}

/* ---- stop -------------------------------------------------------------------------------- */

/* For this long the server executes no command that writes, unless it exits earlier. */
#define PAUSE_MS "5000"

/* False: say() has reported why. */
static bool ask(struct probe *probe, struct local *local, const char *const *words, redisReply **ret_reply)
{
    *ret_reply = probe_ask(probe, words, local->reason);
    if (*ret_reply && (*ret_reply)->type != REDIS_REPLY_ERROR)
        return true;
    say("the server cannot be asked: %s", *ret_reply ? (*ret_reply)->str : local->reason);
    if (*ret_reply)
        dm_reply_free(*ret_reply);
    return false;
}

/* The locks of all prefixes; -1: say() has reported why. */
static long count_locks(struct probe *probe, struct local *local)
{
    char cursor[24] = "0";
    redisReply *reply;
    long count = 0;

    do {
        if (!ask(probe, local, (const char *const[]){ "SCAN", cursor, "MATCH", "*:{*}:lock:*", "COUNT", "1000", NULL },
                 &reply))
            return -1;
        if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 && reply->element[0]->str) {
            snprintf(cursor, sizeof cursor, "%s", reply->element[0]->str);
            count += (long)reply->element[1]->elements;
        }
        dm_reply_free(reply);
    } while (strcmp(cursor, "0") != 0);
    return count;
}

/*
 * A server with locks is not stopped: its holders would go on as if they had the locks until their leases end.  No lock
 * is granted between this check and the end, because the server is paused.
 */
static int pause_if_idle(struct probe *probe, struct local *local)
{
    redisReply *reply;
    long locks;

    if (!ask(probe, local, (const char *const[]){ "CLIENT", "PAUSE", PAUSE_MS, "WRITE", NULL }, &reply))
        return TOOL_UNREACHABLE;
    dm_reply_free(reply);
    locks = count_locks(probe, local);
    if (locks == 0)
        return 0;
    if (ask(probe, local, (const char *const[]){ "CLIENT", "UNPAUSE", NULL }, &reply))
        dm_reply_free(reply);
    if (locks < 0)
        return TOOL_UNREACHABLE;
    say("%ld lock%s held there; use --force to stop the server anyway", locks, locks == 1 ? " is" : "s are");
    return TOOL_NO;
}

/* The server answers SHUTDOWN by closing the connection. */
static int shut_down(struct probe *probe, struct local *local)
{
    struct dm_deadline deadline = dm_deadline_in_ms(local->url->command_timeout_ms);
    const struct timespec pause = { 0, 5 * DM_NS_PER_MS };
    redisReply *reply = probe_ask(probe, (const char *const[]){ "SHUTDOWN", "NOSAVE", NULL }, local->reason);

    if (reply) {
        say("the server does not end: %s", reply->type == REDIS_REPLY_ERROR ? reply->str : "an unknown answer");
        dm_reply_free(reply);
        return TOOL_UNREACHABLE;
    }
    while (is_listening(local, false) && dm_deadline_left_ns(&deadline) > 0)
        nanosleep(&pause, NULL);
    look(local);
    if (!local->is_running)
        return 0;
    say("the server does not end: see the log next to %s", local->url->path);
    return TOOL_UNREACHABLE;
}

static int stop_barred(struct local *local, bool is_forced)
{
    struct probe *probe = probe_new(local->url);
    int status = 0;

    if (!probe || !probe_connect(probe, local->reason)) {
        say("%s", probe ? local->reason : "out of memory");
        return TOOL_UNREACHABLE;
    }
    if (!is_forced)
        status = pause_if_idle(probe, local);
    if (status == 0)
        status = shut_down(probe, local);
    if (status == 0 && !is_forced)
        dm_local_note_idle(local->url);
    return status;
}

/* Nobody starts the next server before we know how this one has ended. */
static int stop(struct local *local, bool is_forced, bool is_json)
{
    int bar, status = 0;

    look(local);
    if (local->is_running) {
        bar = dm_local_bar_starts(local->url, local->reason);
        if (bar < 0) {
            say("%s", local->reason);
            return TOOL_UNREACHABLE;
        }
        status = stop_barred(local, is_forced);
        close(bar);
    }
    if (status == 0)
        print(local, is_json);
    return status;
}

static int start(struct local *local, bool is_json)
{
    if (!is_listening(local, true)) {
        say("%s", local->reason);
        return TOOL_UNREACHABLE;
    }
    look(local);
    return print(local, is_json);
}

/* ---- the subcommand ---------------------------------------------------------------------- */

/* The URL is static because a probe uses it as long as the program runs. */
static int act(char **argv, const char *action, bool is_forced, bool is_json)
{
    static struct local local;
    int error = find(&local);

    if (error)
        return error;
    if (strcmp(action, "start") == 0)
        return start(&local, is_json);
    if (strcmp(action, "stop") == 0)
        return stop(&local, is_forced, is_json);
    if (strcmp(action, "status") != 0)
        return tool_misused(argv, "unknown action \"%s\": give start, stop or status", action);
    look(&local);
    return print(&local, is_json);
}

static int run(int argc, char **argv)
{
    static const struct option options[] = {
        { "force", no_argument, NULL, 'f' },
        { "json", no_argument, NULL, 'j' },
        { NULL, 0, NULL, 0 },
    };
    bool is_forced = false, is_json = false;
    int option;

    while ((option = tool_option(argc, argv, "", options)) != -1) {
        if (option == '?')
            return TOOL_USAGE;
        is_forced |= option == 'f';
        is_json |= option == 'j';
    }
    if (argc - optind != 1)
        return tool_misused(argv, "give start, stop or status");
    return act(argv, argv[optind], is_forced, is_json);
}

const struct subcommand subcommand_local = {
    .name = "local",
    .arguments = "[--force] [--json] start | stop | status",
    .purpose = "start, stop or show the private server of this user on this machine",
    .options = "      --force   stop the server even if locks are held on it\n"
               "\n"
               "Exit status of status: 0 if it is running, 1 if not; of stop: 1 if locks are held.\n",
    .run = run,
};
