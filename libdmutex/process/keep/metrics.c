/* SPDX-License-Identifier: BSD-2-Clause */
#include "process/keep/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/ident.h"
#include "base/log.h"
#include "base/place.h"
#include "base/rank.h"
#include "base/shield.h"
#include "base/text.h"
#include "process/claims/process.h"
#include "process/keep/gate.h"

/* ---- the text ---------------------------------------------------------------------------- */

#define LABELS_ROOM (2 * DM_PROGRAM_ROOM + 40)

/* The labels of all lines.  `program` is one printable word; the format makes us escape two bytes of it. */
static void write_labels(char ret_labels[LABELS_ROOM], const char *program, int pid)
{
    char *to = ret_labels + sprintf(ret_labels, "program=\"");

    for (; *program; program++) {
        if (*program == '"' || *program == '\\')
            *to++ = '\\';
        *to++ = *program;
    }
    sprintf(to, "\",pid=\"%d\"", pid);
}

static void write_head(FILE *file, const char *name, const char *type, const char *help)
{
    fprintf(file, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void write_counter(FILE *file, const char *labels, const char *name, uint64_t value, const char *help)
{
    write_head(file, name, "counter", help);
    fprintf(file, "%s{%s} %" PRIu64 "\n", name, labels, value);
}

/* Uses whole numbers, because the application's locale may have another decimal point. */
static void write_seconds(FILE *file, uint64_t ns)
{
    fprintf(file, "%" PRIu64 ".%09" PRIu64, ns / DM_NS_PER_S, ns % DM_NS_PER_S);
}

/* Prometheus' buckets are cumulative. */
static void write_histogram(FILE *file, const char *labels, const char *name,
                            const uint64_t counts[DMUTEX_STATS_BUCKETS_NP], uint64_t sum_ns, const char *help)
{
    uint64_t count = 0;

    write_head(file, name, "histogram", help);
    for (unsigned i = 0; i < DMUTEX_STATS_BUCKETS_NP - 1; i++) {
        count += counts[i];
        fprintf(file, "%s_bucket{%s,le=\"", name, labels);
        write_seconds(file, dm_stats_limit_us(i) * DM_NS_PER_US);
        fprintf(file, "\"} %" PRIu64 "\n", count);
    }
    count += counts[DMUTEX_STATS_BUCKETS_NP - 1];
    fprintf(file, "%s_bucket{%s,le=\"+Inf\"} %" PRIu64 "\n%s_sum{%s} ", name, labels, count, name, labels);
    write_seconds(file, sum_ns);
    fprintf(file, "\n%s_count{%s} %" PRIu64 "\n", name, labels, count);
}

static void write_gauges(FILE *file, const char *labels, const struct dm_gauges *gauges, const char *name,
                         const char *help, void (*write)(FILE *file, const struct dm_gauge *gauge))
{
    write_head(file, name, "gauge", help);
    for (size_t i = 0; i < gauges->count; i++) {
        fprintf(file, "%s{%s", name, labels);
        if (gauges->each[i].name)
            fprintf(file, ",name=\"%s\"", gauges->each[i].name);
        fputs("} ", file);
        write(file, &gauges->each[i]);
        putc('\n', file);
    }
}

static void write_held(FILE *file, const struct dm_gauge *gauge)
{
    fprintf(file, "%u", gauge->held);
}

static void write_waiting(FILE *file, const struct dm_gauge *gauge)
{
    fprintf(file, "%u", gauge->waiting);
}

/* Writes a time, not an age, because the file is not rewritten while a hold only goes on. */
static void write_oldest(FILE *file, const struct dm_gauge *gauge)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    if (gauge->oldest_ns)
        write_seconds(file, (uint64_t)(now.tv_sec * DM_NS_PER_S + now.tv_nsec - dm_clock_boot_ns() + gauge->oldest_ns));
    else
        putc('0', file);
}

static void write_all_gauges(FILE *file, const char *labels, const struct dm_gauges *gauges)
{
    write_head(file, "dmutex_server_up", "gauge", "1 while the server can be used.");
    fprintf(file, "dmutex_server_up{%s} %d\n", labels, gauges->is_up);
    write_gauges(file, labels, gauges, "dmutex_held", "Mutexes held by threads of the process.", write_held);
    write_gauges(file, labels, gauges, "dmutex_waiting", "Threads of the process that are waiting for a mutex.",
                 write_waiting);
    write_gauges(file, labels, gauges, "dmutex_oldest_hold_timestamp_seconds",
                 "When the oldest hold began; 0 without a hold.", write_oldest);
}

void dm_metrics_write(FILE *file, const dmutex_stats_t *stats, const struct dm_gauges *gauges, const char *program,
                      int pid)
{
    static const char acquisitions[] = "dmutex_acquisitions_total";
    char labels[LABELS_ROOM];

    write_labels(labels, program, pid);
    write_head(file, acquisitions, "counter", "Holds granted by the server, and holds that followed in the process.");
    fprintf(file, "%s{%s,from=\"server\"} %" PRIu64 "\n", acquisitions, labels, stats->acquired_from_server);
    fprintf(file, "%s{%s,from=\"process\"} %" PRIu64 "\n", acquisitions, labels, stats->acquired_in_process);
    write_counter(file, labels, "dmutex_waits_total", stats->waits, "Lock calls that found the mutex not free.");
    write_counter(file, labels, "dmutex_timeouts_total", stats->timeouts, "Lock calls that timed out.");
    write_counter(file, labels, "dmutex_losses_total", stats->losses,
                  "Holds that were lost while a thread had the mutex.");
    write_counter(file, labels, "dmutex_owner_deaths_total", stats->owner_deaths,
                  "Lock calls that returned EOWNERDEAD.");
    write_counter(file, labels, "dmutex_handoffs_total", stats->handoffs, "Holds handed to a thread of the process.");
    write_counter(file, labels, "dmutex_commands_total", stats->commands, "Requests sent to the server.");
    write_counter(file, labels, "dmutex_messages_total", stats->messages, "Messages received from the server.");
    write_counter(file, labels, "dmutex_reconnects_total", stats->reconnects, "Connections that were reopened.");
    write_histogram(file, labels, "dmutex_lock_seconds", stats->lock_times, stats->lock_ns,
                    "Duration of lock calls, excluding the fast path.");
    write_histogram(file, labels, "dmutex_hold_seconds", stats->hold_times, stats->hold_ns,
                    "Duration of holds, excluding the fast path.");
    if (gauges)
        write_all_gauges(file, labels, gauges);
}

/* ---- gauges ------------------------------------------------------------------------------ */

/* A name as a label's value.  Bytes that the format or a terminal could misread are written as in `dmutex list`. */
static char *label_of(const char *name)
{
    char *label = NULL;
    size_t length = 0;
    FILE *text = open_memstream(&label, &length);

    if (!text)
        return NULL;
    for (; *name; name++)
        fprintf(text, *name > ' ' && *name < 127 && *name != '"' && *name != '\\' && *name != '%' ? "%c" : "%%%02X",
                (unsigned char)*name);
    if (fclose(text) == 0)
        return label;
    free(label);
    return NULL;
}

static bool is_held(const struct dm_claim *claim)
{
    if (claim->tenure)
        return claim->hold.phase == DM_HELD && dm_tenure_inside(claim->tenure);
    return claim->hold.phase == DM_HELD && claim->hold.is_entered;
}

static void add_claim(struct dm_gauge *gauge, const struct dm_claim *claim)
{
    gauge->waiting += dm_hold_is_waiting(&claim->hold) && claim->self;
    if (!is_held(claim))
        return;
    gauge->held++;
    if (claim->since_ns && (!gauge->oldest_ns || claim->since_ns < gauge->oldest_ns))
        gauge->oldest_ns = claim->since_ns;
}

struct measuring {
    struct dm_gauges *gauges;
    bool has_names;
};

/* Called for each name until the room is full.  The records of conditions have no claims of their own. */
static bool is_room_full(struct dm_name *name, void *user)
{
    struct measuring *measuring = user;
    struct dm_gauges *gauges = measuring->gauges;
    struct dm_gauge own = { 0 }, *gauge = measuring->has_names ? &own : &gauges->each[0];

    for (const struct dm_claim *claim = name->claims; claim; claim = claim->next_of_name)
        add_claim(gauge, claim);
    for (const struct dm_seat *seat = name->line.first; seat; seat = seat->next)
        gauge->waiting++;
    if (own.held || own.waiting) {
        own.name = label_of(name->key[0] == 'n' ? name->key + 1 : "");
        if (own.name)
            gauges->each[gauges->count++] = own;
    }
    return gauges->count == DM_METRICS_NAMES;
}

/* NULL without memory.  Names are copied under the state lock, and written without it. */
static struct dm_gauges *measure(struct dm_runtime *runtime)
{
    struct dm_gauges *gauges = calloc(1, sizeof *gauges);
    struct measuring measuring = { gauges, runtime->metrics.has_names };

    if (!gauges)
        return NULL;
    gauges->count = !measuring.has_names;
    gauges->is_up = dm_store_is_able(runtime->store, NULL, DM_ASKS);
    dm_state_lock();
    dm_registry_search(&runtime->registry, is_room_full, &measuring);
    dm_state_unlock();
    return gauges;
}

static void free_gauges(struct dm_gauges *gauges)
{
    for (size_t i = 0; gauges && i < gauges->count; i++)
        free(gauges->each[i].name);
    free(gauges);
}

/* ---- the file ---------------------------------------------------------------------------- */

char *dm_metrics_path(const char *pattern, int pid)
{
    size_t length = 0;
    char *path = NULL;
    FILE *text = open_memstream(&path, &length);

    if (!text)
        return NULL;
    for (; *pattern; pattern++) {
        if (pattern[0] == '%' && pattern[1] == 'p') {
            fprintf(text, "%d", pid);
            pattern++;
        } else {
            putc(*pattern, text);
        }
    }
    if (fclose(text) == 0)
        return path;
    free(path);
    return NULL;
}

/*
 * The temporary file is in the folder of the file, so that rename() works, and has a name that the collector ignores.
 * An existing file of that name was left by a killed process with the same id.
 */
static FILE *open_beside(int folder, const char *name)
{
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, fd = openat(folder, name, flags, 0644);
    FILE *file;

    if (fd < 0 && errno == EEXIST && unlinkat(folder, name, 0) == 0)
        fd = openat(folder, name, flags, 0644);
    file = fd < 0 ? NULL : fdopen(fd, "w");
    if (fd >= 0 && !file)
        close(fd);
    return file;
}

/* A reader sees the old file or the new one, never half of one. */
static bool replace_in(int folder, const char *name, const dmutex_stats_t *stats, const struct dm_gauges *gauges)
{
    char program[DM_PROGRAM_ROOM];
    struct dm_shield shield;
    char *beside = NULL;
    FILE *file = NULL;
    bool is_good = false;

    if (asprintf(&beside, "%s.%d.tmp", name, (int)getpid()) < 0)
        return false;
    file = open_beside(folder, beside);
    if (file) {
        dm_ident_program(program);
        dm_shield_raise(&shield);
        dm_metrics_write(file, stats, gauges, program, (int)getpid());
        is_good = !ferror(file);
        is_good = fclose(file) == 0 && is_good && renameat(folder, beside, folder, name) == 0;
        dm_shield_lower(&shield);
        if (!is_good)
            unlinkat(folder, beside, 0);
    }
    free(beside);
    return is_good;
}

/*
 * Root follows no link of another user, who could otherwise have files made or replaced elsewhere.  The folder may be
 * another user's: nothing in it is read or followed.  False with errno, and the path that is to blame, or "".
 */
static bool replace(const char *path, const dmutex_stats_t *stats, const struct dm_gauges *gauges,
                    struct dm_fault *ret_fault)
{
    const char *leaf;
    bool is_good;
    int folder;

    ret_fault->kind = DM_FAULT_ERROR;
    if (geteuid() != 0 || path[0] != '/')
        return replace_in(AT_FDCWD, path, stats, gauges);
    folder = dm_place_open_parent_of_output(path, &leaf, ret_fault);
    errno = ret_fault->kind == DM_FAULT_OWNER ? EPERM : ret_fault->error;
    if (folder < 0)
        return false;
    ret_fault->kind = DM_FAULT_ERROR;
    is_good = replace_in(folder, leaf, stats, gauges);
    close(folder);
    return is_good;
}

/* Once per process, for all its runtimes. */
static bool is_told;

/* A file for all users may name a folder that this user may not write to, so that is not logged. */
static void write_file(const struct dm_metrics *metrics, const dmutex_stats_t *stats, const struct dm_gauges *gauges)
{
    int kept = errno;
    struct dm_fault fault;

    if (!replace(metrics->path, stats, gauges, &fault) && !is_told && (metrics->is_asked || errno != EACCES)) {
        is_told = true;
        if (fault.kind == DM_FAULT_OWNER)
            dm_log_alarm("the metrics file %.300s is not written by root: %s %s %u", metrics->path, fault.place,
                         fault.words, (unsigned)fault.owner);
        else
            dm_log_alarm("the metrics file %.300s cannot be written: %s", metrics->path, dm_text_error(errno));
    }
    errno = kept;
}

/* Every change of a counter increases the sum, and a change of the gauges alone makes it different. */
static uint64_t sum_of(const dmutex_stats_t *stats, const struct dm_gauges *gauges)
{
    const uint64_t *counter = &stats->acquired_from_server;
    const uint64_t *end = stats->hold_times + DMUTEX_STATS_BUCKETS_NP;
    uint64_t sum = 0;

    for (; counter < end; counter++)
        sum += *counter;
    for (size_t i = 0; gauges && i < gauges->count; i++)
        sum += (uint64_t)(gauges->each[i].held + 2 * gauges->each[i].waiting) << 32;
    return sum + (gauges && gauges->is_up);
}

/* The caller holds the gate.  True if anything has changed since the last time. */
static bool write_changes(struct dm_runtime *runtime)
{
    struct dm_metrics *metrics = &runtime->metrics;
    struct dm_gauges *gauges = measure(runtime);
    dmutex_stats_t stats;
    uint64_t sum;
    bool has_changed;

    dm_runtime_count(&stats);
    sum = sum_of(&stats, gauges);
    has_changed = sum != metrics->written;
    metrics->written = sum;
    if (has_changed)
        write_file(metrics, &stats, gauges);
    free_gauges(gauges);
    return has_changed;
}

/* ---- when -------------------------------------------------------------------------------- */

void dm_metrics_init(struct dm_metrics *metrics, const struct dm_settings *settings)
{
    metrics->has_names = settings->has_metrics_names;
    metrics->is_asked = settings->asks_for_metrics;
    if (*settings->metrics)
        metrics->path = dm_metrics_path(settings->metrics, (int)getpid());
}

/* A call that ends while the counters are read arms again, and is in the next file. */
static bool take_turn(struct dm_runtime *runtime, bool *ret_has_claims)
{
    struct dm_metrics *metrics = &runtime->metrics;
    int64_t now_ns = dm_clock_boot_ns();
    bool is_due;

    dm_state_lock();
    is_due = dm_metrics_due_ns(metrics) <= now_ns;
    *ret_has_claims = runtime->registry.claims != NULL;
    if (is_due) {
        metrics->is_armed = false;
        metrics->begun_ns = now_ns;
    }
    dm_state_unlock();
    return is_due;
}

/* While the process has a claim, the fast path may change the counters without arming. */
void dm_metrics_run(struct dm_runtime *runtime)
{
    bool has_claims, has_changed;

    if (!runtime->metrics.path || !take_turn(runtime, &has_claims))
        return;
    has_changed = write_changes(runtime);
    if (!has_changed && !has_claims)
        return;
    dm_state_lock();
    dm_metrics_arm(runtime);
    dm_state_unlock();
}

/* Takes the gate, so that the loop thread, which may be writing, does not replace the last numbers by older ones. */
void dm_metrics_end(struct dm_runtime *runtime)
{
    bool is_used;

    if (!runtime->metrics.path)
        return;
    dm_state_lock();
    is_used = runtime->metrics.is_armed || runtime->metrics.begun_ns;
    dm_state_unlock();
    if (!is_used)
        return;
    dm_gate_enter();
    write_changes(runtime);
    dm_gate_leave();
}
