/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dmutex break: takes a lock away from its holder.
 *
 * The holder learns of this by a message.  Until the message arrives, it goes on as the holder.  So we ask for a
 * confirmation, and log the user, the name and the holder to the system log.
 */
#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include <dmutex/dmutex.h>

#include "api/view.h"
#include "base/text.h"
#include "say.h"
#include "seen.h"
#include "tool.h"

static void keep(void *user, const struct dm_seen *seen)
{
    *(struct seen *)user = seen_copy(seen);
}

static void describe(const struct seen *seen, char *ret_text, size_t room)
{
    char name[SAY_NAME_ROOM], party[SEEN_PARTY_ROOM], time[SAY_TIME_ROOM];

    snprintf(ret_text, room, "\"%s\", held by %s for %s, token %" PRIu64 ", %" PRIu32 " waiting",
             say_name(seen->name, name), seen_holder(seen, party), say_time(seen->data.info.held_ms, time),
             seen->data.info.shown.token << DM_TOKEN_SHIFT, seen->data.info.shown.waiters);
}

/* Anything but a line that begins with y means no. */
static bool is_confirmed(const char *words)
{
    char answer[80];

    fprintf(stderr, "Break %s?\nThe holder may go on until it learns of this. [y/N] ", words);
    fflush(stderr);
    return fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

/* The facility is that of authorisations, because a user has changed another user's lock. */
static void leave_audit_line(const char *words)
{
    const struct passwd *user = getpwuid(getuid());
    char line[2048];

    snprintf(line, sizeof line, "user %s (%u) broke %s", user ? user->pw_name : "?", (unsigned)getuid(), words);
    dm_text_clean(line);
    openlog("dmutex", LOG_PID, LOG_AUTH);
    syslog(LOG_AUTH | LOG_NOTICE, "%s", line);
    closelog();
    say("%s", line);
}

static void print_json(const struct seen *seen, bool is_broken)
{
    struct json json = json_begin(stdout);

    json_open(&json, NULL, '{');
    json_bool(&json, "broken", is_broken);
    json_open(&json, "before", '{');
    seen_json(&json, seen);
    json_close(&json);
    json_close(&json);
    json_end(&json);
}

static int force(const struct seen *seen, const char *words)
{
    dmutex_t mutex;

    if (dmutex_init_np(&mutex, seen->name, NULL) != 0 || dmutex_forceunlock_np(&mutex) != 0)
        return tool_failed(seen->name);
    leave_audit_line(words);
    return 0;
}

/* Returns TOOL_NO if nothing was broken: the lock was free, or the answer was no. */
static int decide(char **argv, const struct seen *seen, bool is_sure)
{
    char words[1600], name[SAY_NAME_ROOM];

    if (seen->fault)
        return tool_foreign(seen->name);
    if (!seen->data.info.shown.locked) {
        say("%s: nobody holds this lock", say_name(seen->name, name));
        return TOOL_NO;
    }
    describe(seen, words, sizeof words);
    if (!is_sure && !isatty(STDIN_FILENO))
        return tool_misused(argv, "standard input is not a terminal: give --yes to break the lock without being asked");
    if (!is_sure && !is_confirmed(words)) {
        say("nothing was broken");
        return TOOL_NO;
    }
    return force(seen, words);
}

static int break_lock(char **argv, const char *name, bool is_sure, bool is_json)
{
    char key[DM_MUTEX_KEY_ROOM];
    struct seen seen = { 0 };
    int status;

    snprintf(key, sizeof key, "n%s", name);
    if (dm_view_one(key, 0, keep, &seen) != 0)
        return tool_failed(name);
    status = decide(argv, &seen, is_sure);
    if (is_json && (status == 0 || status == TOOL_NO))
        print_json(&seen, status == 0);
    seen_clear(&seen);
    return status;
}

static int run(int argc, char **argv)
{
    static const struct option options[] = {
        { "yes", no_argument, NULL, 'y' },
        { "json", no_argument, NULL, 'j' },
        { NULL, 0, NULL, 0 },
    };
    bool is_sure = false, is_json = false;
    int option, status;

    while ((option = tool_option(argc, argv, "+y", options)) != -1) {
        if (option == '?')
            return TOOL_USAGE;
        is_sure |= option == 'y';
        is_json |= option == 'j';
    }
    status = tool_take_name(argc, argv);
    return status ? status : break_lock(argv, argv[optind], is_sure, is_json);
}

const struct subcommand subcommand_break = {
    .name = "break",
    .arguments = "[-y] [--json] NAME",
    .purpose = "take a lock away from its holder",
    .options = "  -y, --yes     do not ask\n"
               "\n"
               "The next waiter gets the lock at once.  The former holder learns of it by message, or at the latest\n"
               "with its next renewal.  The system log gets a line.  Exit status: 1 if nothing was broken.\n",
    .run = run,
};
