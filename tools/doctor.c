/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dmutex doctor: checks the server, the connection to it and this host, and gives advice.
 *
 * Every check goes over a connection of doctor's own, which only logs in.  So a fault that makes the library refuse the
 * server is found like any other, and does not hide the next one.
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
#include "rights.h"
#include "say.h"
#include "tool.h"

static const char *const grades[] = { [GRADE_OK] = "ok", [GRADE_WARN] = "warn", [GRADE_FAIL] = "fail" };

static bool is_same(const struct finding *one, const struct finding *other)
{
    return one->grade == other->grade && strcmp(one->check, other->check) == 0 &&
           strcmp(one->server, other->server) == 0 && strcmp(one->text, other->text) == 0;
}

/* Two checks may find the same fault: the channels of the inbox are tried by a subscription and by a message. */
static struct finding *place_of(struct doctor *doctor, const struct finding *finding)
{
    for (int i = 0; i < doctor->count; i++)
        if (is_same(&doctor->findings[i], finding))
            return &doctor->findings[i];
    return &doctor->findings[doctor->count < FINDINGS_MOST ? doctor->count++ : FINDINGS_MOST - 1];
}

void doctor_find(struct doctor *doctor, enum grade grade, const char *check, const char *format, ...)
{
    struct finding finding = { .grade = grade };
    va_list args;

    snprintf(finding.check, sizeof finding.check, "%s", check);
    snprintf(finding.server, sizeof finding.server, "%s", doctor->server);
    dm_text_clean(finding.server);
    va_start(args, format);
    vsnprintf(finding.text, sizeof finding.text, format, args);
    va_end(args);
    dm_text_clean(finding.text);
    doctor->last = place_of(doctor, &finding);
    *doctor->last = finding;
}

void doctor_advise(struct doctor *doctor, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(doctor->last->advice, sizeof doctor->last->advice, format, args);
    va_end(args);
    dm_text_clean(doctor->last->advice);
}

/* True if a finding that is no fault repeats one of the first server's findings from..to. */
static bool is_repetition(const struct doctor *doctor, const struct finding *finding, int from, int to)
{
    static const char *const measured[] = { "clock", "round trip", "grace" };

    if (finding->grade != GRADE_OK)
        return false;
    for (size_t i = 0; i < DM_COUNT(measured); i++) {
        if (strcmp(finding->check, measured[i]) == 0)
            return true;
    }
    for (int i = from; i < to; i++) {
        if (strcmp(finding->check, doctor->findings[i].check) == 0 &&
            strcmp(finding->text, doctor->findings[i].text) == 0)
            return true;
    }
    return false;
}

void doctor_leave_out_repetitions(struct doctor *doctor, int first, int first_end, int begin)
{
    int kept = begin;

    for (int i = begin; i < doctor->count; i++) {
        if (!is_repetition(doctor, &doctor->findings[i], first, first_end))
            doctor->findings[kept++] = doctor->findings[i];
    }
    doctor->count = kept;
}

redisReply *doctor_ask(struct doctor *doctor, const char *const *words)
{
    char reason[DM_REASON_ROOM];
    redisReply *reply = probe_ask(doctor->probe, words, reason);

    if (!reply || reply->type != REDIS_REPLY_ERROR)
        return reply;
    dm_reply_free(reply);
    return NULL;
}

/* ---- this host --------------------------------------------------------------------------- */

/* Programs use the shared library, but doctor does not: the two may come from different installations. */
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

void doctor_join_facts(struct facts *facts, const struct facts *others)
{
    facts->is_master = both(facts->is_master, others->is_master);
    facts->keeps_locks = both(facts->keeps_locks, others->keeps_locks);
    facts->survives_power = both(facts->survives_power, others->survives_power);
    facts->knows_birth = both(facts->knows_birth, others->knows_birth);
    facts->lacks_rights |= others->lacks_rights;
}

static const char *assumption_of(const struct doctor *doctor)
{
    if (doctor->kind == DM_URL_SENTINEL)
        return "a failover creates no second holder: if the sentinels know of it within half of the option switch "
               "(A8), and leases are at least five times switch";
    if (doctor->kind == DM_URL_CLUSTER)
        return "a failover creates no second holder: if a master that is cut off stops before its replica is promoted, "
               "leases are at least 2.5 times the option switch, and no slot leaves a new master within a lease and "
               "switch";
    if (doctor->kind == DM_URL_QUORUM)
        return "the loss of servers creates no second holder: if fewer than half of them fail at one time";
    if (doctor->kind == DM_URL_POSTGRES)
        return "a failover creates no second holder: if the old primary has ended before a standby is promoted";
    if (doctor->kind == DM_URL_ETCD || doctor->kind == DM_URL_ZOOKEEPER)
        return "the loss of members creates no second holder: if fewer than half of them lose their data";
    if (doctor->kind == DM_URL_MEMCACHED)
        return "a restart creates no second holder: if the holders are there again within a lease of theirs";
    if (doctor->kind == DM_URL_MARIADB)
        return "a failover creates no second holder: if the old primary has ended before another server takes over";
    return "a failover or restart creates no second holder: with one master behind the address";
}

static const char *durability_of(const struct doctor *doctor)
{
    if (doctor->kind == DM_URL_POSTGRES)
        return "locks survive a power failure of the server: fsync and synchronous_commit on";
    if (doctor->kind == DM_URL_ETCD || doctor->kind == DM_URL_ZOOKEEPER)
        return "locks survive a power failure of all members, which write each one to their disks";
    if (doctor->kind == DM_URL_MEMCACHED)
        return "locks survive a power failure: memcached keeps none of them";
    if (doctor->kind == DM_URL_MARIADB)
        return "locks survive a power failure of the server: innodb_flush_log_at_trx_commit 1, and sync_binlog 1";
    return "locks survive a power failure of the servers: appendonly yes, appendfsync always";
}

static void judge(const struct doctor *doctor, struct promise ret_promises[5])
{
    const struct facts *facts = &doctor->facts;
    enum answer may_lock = facts->lacks_rights ? NO : YES;
    enum answer holder = both(may_lock, both(facts->is_master, facts->keeps_locks));
    enum answer grace = doctor->url->has_grace ? facts->knows_birth : NO;
    const struct promise promises[5] = {
        { "P0", holder, "at most one live process holds a name" },
        { "P1", holder, "a holder learns of a loss before another can hold the name" },
        { "P2", UNKNOWN, "the guarded data stay correct: if they refuse old tokens, which cannot be checked here" },
        { "P3", both(holder, grace), assumption_of(doctor) },
        { "P4", both(holder, facts->survives_power), durability_of(doctor) },
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

        printf("%s%-4s%s  %-11s  %s%s%s\n", color, grades[finding->grade], *color ? "\033[0m" : "", finding->check,
               finding->server, *finding->server ? ": " : "", finding->text);
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
        if (*doctor->findings[i].server)
            json_text(&json, "server", doctor->findings[i].server);
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

/* ---- the subcommand ---------------------------------------------------------------------- */

bool doctor_connect(struct doctor *doctor, struct dm_url *url, char ret_reason[DM_REASON_ROOM])
{
    snprintf(ret_reason, DM_REASON_ROOM, "out of memory");
    doctor->url = url;
    doctor->probe = probe_new(url);
    return doctor->probe && probe_connect(doctor->probe, ret_reason);
}

static int tell_login(struct doctor *doctor, const char *reason)
{
    doctor_find(doctor, GRADE_FAIL, "login", "%s", reason);
    doctor_advise(doctor,
                  doctor->url->password
                      ? "correct user and password in DMUTEX_URL or dmutex.conf: dmutex acl prints a user's line"
                      : "write redis://USER:PASSWORD@HOST; or keep the password in a file, and name the file: "
                        "password_file=/PATH in the URL, or PasswordFile=/PATH in dmutex.conf");
    return TOOL_DENIED;
}

/* A missing right is a fault like the others, not a refused login: status 1. */
static int tell_database(struct doctor *doctor)
{
    const char *refusal = probe_refusal(doctor->probe);
    unsigned db = doctor->url->db;

    switch (rights_refused(refusal)) {
    case REFUSED_COMMAND:
        doctor_find(doctor, GRADE_FAIL, "rights", "the user lacks +select, and the URL names database %u", db);
        doctor_advise(doctor, DOCTOR_ACL);
        break;
    case REFUSED_DATABASE:
        doctor_tell_missing_database(doctor);
        break;
    default:
        doctor_find(doctor, GRADE_FAIL, "database", "database %u cannot be selected: %s", db, refusal);
        doctor_advise(doctor, "name another database in the URL, or raise \"databases\" in the server's configuration");
    }
    return TOOL_NO;
}

/*
 * A node of the URL that is also a master is tried twice.  The second finding is the more severe, and replaces the
 * first.
 */
static void forget(struct doctor *doctor, const char *text)
{
    int kept = 0;

    for (int i = 0; i < doctor->count; i++)
        if (strcmp(doctor->findings[i].text, text) != 0)
            doctor->findings[kept++] = doctor->findings[i];
    doctor->count = kept;
}

int doctor_tell_unusable(struct doctor *doctor, enum grade grade, const char *check, const char *reason,
                         const char *advice)
{
    enum probe_obstacle obstacle = doctor->probe ? probe_obstacle(doctor->probe) : PROBE_WAY;

    if (obstacle == PROBE_LOGIN)
        return tell_login(doctor, reason);
    if (obstacle == PROBE_DATABASE)
        return tell_database(doctor);
    forget(doctor, reason);
    doctor_find(doctor, grade, check, "%s", reason);
    doctor_advise(doctor, "%s", advice);
    return TOOL_UNREACHABLE;
}

void doctor_look_at_tls(struct doctor *doctor)
{
    if (!doctor->url->has_tls || doctor->url->is_verified)
        return;
    doctor_find(doctor, GRADE_WARN, "tls", "verify=none: any server can stand in for this one");
    doctor_advise(doctor, "name the authority of the server's certificate in cacert=, and leave out verify=none");
}

/* If the library refuses the server, nothing is tried and nothing promised there. */
void doctor_examine(struct doctor *doctor)
{
    if (!doctor_look_at_server(doctor)) {
        doctor->facts = (struct facts){ NO, NO, NO, NO, false };
        return;
    }
    doctor_try_messages(doctor); /* finds out whether the subscription is permitted */
    doctor_try_rights(doctor);
    doctor_try_times(doctor);
    doctor_look_at_grace(doctor);
}

/* Returns 0, or the exit status if the server cannot be used and nothing else can be checked. */
static int examine_only_server(struct doctor *doctor)
{
    int status = doctor->kind == DM_URL_SENTINEL ? doctor_look_at_sentinels(doctor) : 0;
    char reason[DM_REASON_ROOM], name[200];

    if (status)
        return status;
    if (!doctor_connect(doctor, doctor->url, reason))
        return doctor_tell_unusable(doctor, GRADE_FAIL, "server", reason,
                                    "look at DMUTEX_URL or dmutex.conf, at the server, and at the network between");
    dm_url_describe(doctor->url, name, sizeof name);
    doctor_find(doctor, GRADE_OK, "server", "%s answers%s", name, doctor->url->has_tls ? ", by TLS" : "");
    doctor_look_at_tls(doctor);
    doctor_examine(doctor);
    return 0;
}

static int examine_servers(struct doctor *doctor)
{
    if (doctor->kind == DM_URL_CLUSTER)
        return doctor_examine_cluster(doctor);
    if (doctor->kind == DM_URL_QUORUM)
        return doctor_examine_quorum(doctor);
    if (doctor->kind == DM_URL_POSTGRES)
        return doctor_examine_postgres(doctor);
    if (doctor->kind == DM_URL_ETCD)
        return doctor_examine_etcd(doctor);
    if (doctor->kind == DM_URL_MEMCACHED)
        return doctor_examine_memcached(doctor);
    if (doctor->kind == DM_URL_MARIADB)
        return doctor_examine_mariadb(doctor);
    if (doctor->kind == DM_URL_ZOOKEEPER)
        return doctor_examine_zookeeper(doctor);
    return examine_only_server(doctor);
}

static int examine(struct doctor *doctor, bool is_json)
{
    struct promise promises[5];
    int status;

    doctor->kind = doctor->url->kind;
    doctor->server = "";
    status = examine_servers(doctor);
    if (status == 0)
        judge(doctor, promises);
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
        return tool_misused(argv, "it takes no argument");
    error = tool_find_url(&doctor.url);
    return error ? error : examine(&doctor, is_json);
}

const struct subcommand subcommand_doctor = {
    .name = "doctor",
    .arguments = "[--json]",
    .purpose = "check the server, the user's rights and the network, and say what to do",
    .options = "Exit status: 0 if no check failed, 1 if one did, 69 if the server cannot be reached,\n"
               "77 if it refuses the login or wants one.\n",
    .run = run,
};
