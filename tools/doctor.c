/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dmutex doctor: checks the server, the way there and this host, and advises.
 *
 * Every check goes over a connection of the doctor's own, which only logs in: a fault that makes the library refuse the
 * server is found like any other, and does not hide the next.
 */
#include "doctor.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dmutex/version.h>

#include "base/attrs.h"
#include "json.h"
#include "say.h"
#include "tool.h"

static const char *const grades[] = { [GRADE_OK] = "ok", [GRADE_WARN] = "warn", [GRADE_FAIL] = "fail" };

void doctor_find(struct doctor *doctor, enum grade grade, const char *check, const char *format, ...)
{
    struct finding *finding = &doctor->findings[doctor->count < FINDINGS_MOST ? doctor->count++ : FINDINGS_MOST - 1];
    va_list args;

    *finding = (struct finding){ .grade = grade };
    snprintf(finding->check, sizeof finding->check, "%s", check);
    va_start(args, format);
    vsnprintf(finding->text, sizeof finding->text, format, args);
    va_end(args);
    dm_text_clean(finding->text);
}

void doctor_advise(struct doctor *doctor, const char *format, ...)
{
    struct finding *finding = &doctor->findings[doctor->count - 1];
    va_list args;

    va_start(args, format);
    vsnprintf(finding->advice, sizeof finding->advice, format, args);
    va_end(args);
    dm_text_clean(finding->advice);
}

redisReply *doctor_ask(struct doctor *doctor, const char *const *words)
{
    char reason[DM_REASON_ROOM];
    redisReply *reply = probe_ask(doctor->probe, words, reason);

    if (!reply || reply->type != REDIS_REPLY_ERROR)
        return reply;
    freeReplyObject(reply);
    return NULL;
}

/* ---- this host --------------------------------------------------------------------------- */

/* Programs use the shared library, and the doctor does not: the two may come from two installations. */
static void look_at_library(struct doctor *doctor)
{
    void *library = dlopen("libdmutex.so.0", RTLD_LAZY | RTLD_LOCAL);
    const char *(*version)(void) = NULL;

    if (library)
        *(void **)&version = dlsym(library, "dmutex_version_np");
    if (!version)
        doctor_find(doctor, GRADE_OK, "library", "dmutex %s; no libdmutex.so.0 is installed where the loader looks",
                    DMUTEX_VERSION_STRING);
    else if (strcmp(version(), DMUTEX_VERSION_STRING) == 0)
        doctor_find(doctor, GRADE_OK, "library", "dmutex and libdmutex.so.0 are %s", DMUTEX_VERSION_STRING);
    else
        doctor_find(doctor, GRADE_WARN, "library", "dmutex is %s, and libdmutex.so.0 is %s", DMUTEX_VERSION_STRING,
                    version());
}

/* ---- promises ---------------------------------------------------------------------------- */

struct promise {
    const char *name;
    enum answer holds;
    const char *text;
};

static enum answer both(enum answer one, enum answer other)
{
    return one == NO || other == NO ? NO : one == UNKNOWN || other == UNKNOWN ? UNKNOWN : YES;
}

static void judge(const struct doctor *doctor, struct promise ret_promises[5])
{
    enum answer rights = doctor->lacks_rights ? NO : YES;
    enum answer holder = both(rights, both(doctor->is_master, doctor->keeps_locks));
    enum answer grace = doctor->url->has_grace ? doctor->knows_birth : NO;
    const struct promise promises[5] = {
        { "P0", holder, "at most one live process holds a name" },
        { "P1", holder, "a holder is told of a loss before another can hold the name" },
        { "P2", UNKNOWN, "the guarded resource stays right: if it refuses old tokens, which no server can tell" },
        { "P3", both(holder, grace),
          doctor->has_sentinels
              ? "failover makes no two holders: if the sentinels know of it within half of the option switch (A8)"
              : "failover and restart make no two holders: with one master behind the address" },
        { "P4", both(holder, doctor->survives_power),
          "locks survive a power failure of the server: appendonly yes, appendfsync always" },
    };

    memcpy(ret_promises, promises, sizeof promises);
}

/* ---- output ------------------------------------------------------------------------------ */

static enum grade worst(const struct doctor *doctor)
{
    enum grade grade = GRADE_OK;

    for (int i = 0; i < doctor->count; i++)
        if (doctor->findings[i].grade > grade)
            grade = doctor->findings[i].grade;
    return grade;
}

static const char *color_of(enum grade grade)
{
    static const char *const colors[] = {
        [GRADE_OK] = "\033[32m", [GRADE_WARN] = "\033[33m", [GRADE_FAIL] = "\033[31m"
    };

    return say_is_screen(stdout) && !getenv("NO_COLOR") ? colors[grade] : "";
}

static void print(const struct doctor *doctor, const struct promise promises[5])
{
    static const char *const answers[] = { [UNKNOWN] = "not known", [NO] = "no", [YES] = "yes" };

    for (int i = 0; i < doctor->count; i++) {
        const struct finding *finding = &doctor->findings[i];
        const char *color = color_of(finding->grade);

        printf("%s%-4s%s  %-11s  %s\n", color, grades[finding->grade], *color ? "\033[0m" : "", finding->check,
               finding->text);
        if (*finding->advice)
            printf("%-4s  %-11s  -> %s\n", "", "", finding->advice);
    }
    for (int i = 0; promises && i < 5; i++)
        printf("%-4s  %-11s  %s\n", promises[i].name, answers[promises[i].holds], promises[i].text);
}

static void print_json(const struct doctor *doctor, const struct promise promises[5])
{
    struct json json = json_begin(stdout);

    json_open(&json, NULL, '{');
    json_text(&json, "result", grades[worst(doctor)]);
    json_open(&json, "checks", '[');
    for (int i = 0; i < doctor->count; i++) {
        json_open(&json, NULL, '{');
        json_text(&json, "check", doctor->findings[i].check);
        json_text(&json, "result", grades[doctor->findings[i].grade]);
        json_text(&json, "text", doctor->findings[i].text);
        json_text(&json, "advice", doctor->findings[i].advice);
        json_close(&json);
    }
    json_close(&json);
    json_open(&json, "promises", '{');
    for (int i = 0; promises && i < 5; i++) {
        if (promises[i].holds == UNKNOWN)
            json_null(&json, promises[i].name);
        else
            json_bool(&json, promises[i].name, promises[i].holds == YES);
    }
    json_close(&json);
    json_close(&json);
    json_end(&json);
}

/* ---- the word ---------------------------------------------------------------------------- */

/*
 * Waits for one answer, also an error: with TLS 1.3 a server refuses the client's certificate only after the handshake,
 * and a server that is stopped takes connections.
 */
static bool answers(struct doctor *doctor, char ret_reason[DM_REASON_ROOM])
{
    static const char *const words[] = { "PING", NULL };
    redisReply *reply = probe_ask(doctor->probe, words, ret_reason);

    freeReplyObject(reply);
    return reply != NULL;
}

/* 0; or the exit status: the server cannot be used, and nothing else can be said. */
static int connect_to(struct doctor *doctor)
{
    char reason[DM_REASON_ROOM] = "out of memory", name[200];
    int status;

    dm_url_describe(doctor->url, name, sizeof name);
    doctor->probe = probe_new(doctor->url, NULL);
    if (doctor->probe && probe_connect(doctor->probe, reason) && answers(doctor, reason)) {
        doctor_find(doctor, GRADE_OK, "server", "%s answers%s", name, doctor->url->has_tls ? ", by TLS" : "");
        if (doctor->url->has_tls && !doctor->url->is_verified) {
            doctor_find(doctor, GRADE_WARN, "tls", "verify=none: any server can stand in for this one");
            doctor_advise(doctor, "give cacert= the authority of the server's certificate, and leave verify=none out");
        }
        return 0;
    }
    doctor_find(doctor, GRADE_FAIL, "server", "%s", reason);
    status = tool_status_of(reason);
    doctor_advise(doctor,
                  status == TOOL_DENIED
                      ? "correct user and password in DMUTEX_URL or dmutex.conf: dmutex acl prints a user's line"
                      : "look at DMUTEX_URL or dmutex.conf, at the server, and at the network between");
    return status;
}

static int examine(struct doctor *doctor, bool is_json)
{
    struct promise promises[5];
    bool has_address = doctor->url->kind != DM_URL_SENTINEL || doctor_look_at_sentinels(doctor);
    int status = has_address ? connect_to(doctor) : TOOL_UNREACHABLE;

    if (status == 0) {
        doctor_look_at_server(doctor);
        doctor_try_messages(doctor); /* finds whether the subscription is permitted */
        doctor_try_rights(doctor);
        doctor_try_times(doctor);
        doctor_look_at_grace(doctor);
        judge(doctor, promises);
    }
    look_at_library(doctor);
    if (is_json)
        print_json(doctor, status ? NULL : promises);
    else
        print(doctor, status ? NULL : promises);
    if (status)
        return status;
    return worst(doctor) == GRADE_FAIL ? TOOL_NO : 0;
}

static int run(int argc, char **argv)
{
    static const struct option options[] = { { "json", no_argument, NULL, 'j' }, { NULL, 0, NULL, 0 } };
    static struct doctor doctor;
    bool is_json = false;
    int option, error;

    while ((option = tool_option(argc, argv, "+", options)) != -1) {
        if (option == '?')
            return TOOL_USAGE;
        is_json = true;
    }
    if (argv[optind])
        return tool_misused(argv, "there is no argument");
    error = tool_find_url(&doctor.url);
    return error ? error : examine(&doctor, is_json);
}

const struct word word_doctor = {
    .name = "doctor",
    .arguments = "[--json]",
    .purpose = "check the server, the user's rights and the network, and say what to do",
    .options = "Exit status: 0 without a \"fail\", 1 with one, 69 if the server cannot be reached,\n"
               "77 if the server refuses the login.\n",
    .run = run,
};
