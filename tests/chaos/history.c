/* SPDX-License-Identifier: BSD-2-Clause */
#include "history.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

const struct mutex_kind mutex_kinds[NAMES] = {
    [NAME_NORMAL] = { "chaos/normal", PTHREAD_MUTEX_NORMAL, false },
    [NAME_RECURSIVE] = { "chaos/recursive", PTHREAD_MUTEX_RECURSIVE, false },
    [NAME_CHECKED] = { "chaos/checked", PTHREAD_MUTEX_ERRORCHECK, true },
    [NAME_APART] = { "apart", PTHREAD_MUTEX_NORMAL, true },
    [NAME_TABLE] = { "chaos/table", PTHREAD_MUTEX_NORMAL, true },
};

static const char *const op_names[OP_KINDS] = {
    [OP_NONE] = "nothing",        [OP_LOCK] = "lock",           [OP_TRYLOCK] = "trylock",
    [OP_TIMEDLOCK] = "timedlock", [OP_UNLOCK] = "unlock",       [OP_CONSISTENT] = "consistent",
    [OP_WAIT] = "wait",           [OP_TIMEDWAIT] = "timedwait", [OP_SIGNAL] = "signal",
    [OP_BROADCAST] = "broadcast", [OP_TOUCH] = "touch",
};

/* Asks the kernel, past any stand-in for clock_gettime(). */
int64_t history_now_ns(void)
{
    struct timespec now;

    syscall(SYS_clock_gettime, CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

struct history *history_make(void)
{
    struct history *history =
        mmap(NULL, sizeof *history, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (history == MAP_FAILED) {
        perror("no memory for a history");
        abort();
    }
    return history;
}

void history_clear(struct history *history)
{
    memset(history->tracks, 0, history->track_count * sizeof history->tracks[0]);
    memset(history->ops, 0, history_size(history) * sizeof history->ops[0]);
    memset(history->surprise, 0, sizeof history->surprise);
    history->may_forget = false;
    history->may_be_untold = false;
    history->track_count = 0;
    history->op_count = 0;
}

void history_free(struct history *history)
{
    munmap(history, sizeof *history);
}

unsigned history_add_track(struct history *history, int process, int thread)
{
    unsigned track = __atomic_fetch_add(&history->track_count, 1, __ATOMIC_ACQ_REL);

    if (track >= HISTORY_TRACKS) {
        fprintf(stderr, "# more than %d threads in one history\n", HISTORY_TRACKS);
        abort();
    }
    history->tracks[track].process = process;
    history->tracks[track].thread = thread;
    return track;
}

struct op *history_begin(struct history *history, unsigned track, enum op_kind kind, enum name name)
{
    uint32_t number = __atomic_load_n(&history->op_count, __ATOMIC_ACQUIRE);
    struct op *op;

    if (number >= HISTORY_OPS)
        return NULL;
    number = __atomic_fetch_add(&history->op_count, 1, __ATOMIC_ACQ_REL);
    if (number >= HISTORY_OPS)
        return NULL;
    op = &history->ops[number];
    op->track = (uint16_t)track;
    op->name = (uint8_t)name;
    op->began_ns = history_now_ns();
    __atomic_store_n(&op->kind, (uint8_t)kind, __ATOMIC_RELEASE);
    return op;
}

void history_end(struct op *op, int result, int64_t ended_ns)
{
    op->result = result;
    __atomic_store_n(&op->ended_ns, ended_ns, __ATOMIC_RELEASE);
}

size_t history_size(const struct history *history)
{
    return history->op_count < HISTORY_OPS ? history->op_count : HISTORY_OPS;
}

bool op_is_lock(const struct op *op)
{
    return op->kind == OP_LOCK || op->kind == OP_TRYLOCK || op->kind == OP_TIMEDLOCK;
}

bool op_is_wait(const struct op *op)
{
    return op->kind == OP_WAIT || op->kind == OP_TIMEDWAIT;
}

const char *op_name(const struct op *op)
{
    return op_names[op->kind];
}

static void print_op(const struct op *op, const struct track *track, int64_t zero_ns)
{
    printf("#   %d.%d %-10s %-15s %9.3f .. %9.3f ms: ", track->process, track->thread, op_name(op),
           mutex_kinds[op->name].name, (double)(op->began_ns - zero_ns) / 1e6,
           op->ended_ns ? (double)(op->ended_ns - zero_ns) / 1e6 : 0.0);
    if (!op->ended_ns)
        printf("not finished%s\n", track->killed_ns ? ", killed" : "");
    else
        printf("%s, token %llu, depth %u, certain until %.3f ms, told at %.3f ms\n",
               op->result ? strerrorname_np(op->result) : "0", (unsigned long long)op->token, op->depth,
               op->certain_ns ? (double)(op->certain_ns - zero_ns) / 1e6 : 0.0, (double)(op->told_ns - zero_ns) / 1e6);
}

#define PRINTED 40

void history_print(const struct history *history, enum name name, int64_t from_ns, int64_t until_ns)
{
    int printed = 0;

    for (size_t i = 0; i < history_size(history); i++) {
        const struct op *op = &history->ops[i];
        bool is_open = op->kind && !op->ended_ns && !history->tracks[op->track].killed_ns;
        bool is_then = op->began_ns <= until_ns && (!op->ended_ns || op->ended_ns >= from_ns);

        if (!op->kind || !(is_open || (is_then && op->name == name && printed < PRINTED)))
            continue;
        print_op(op, &history->tracks[op->track], from_ns);
        printed += !is_open;
    }
    fflush(stdout);
}
