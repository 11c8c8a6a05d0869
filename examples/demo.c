/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What libdmutex is for: processes on several hosts change one thing, one at a time, and the death of one of them does
 * not harm the others.
 *
 * Four processes, each with its own host name and connection, add to a counter in a plain file, 5000 times each. One of
 * them is killed with SIGKILL in the middle of an update. This runs twice: with a dmutex, and without one.
 *
 *     demo                              with a private server, which ends afterwards
 *     DMUTEX_URL=redis://host demo      with that server
 *
 * Exits with 0 if, and only if, the count with the mutex is exact.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <dmutex/dmutex.h>

enum { HOSTS = 4, SHARE = 5000, ALL = HOSTS * SHARE };

/* The worker that is killed, and in which update. */
enum { VICTIM = 2, KILL_AT = SHARE / 2 };

/*
 * The server keeps a dead owner's mutex until the lease ends. The default of 10 s allows for programs that are
 * sometimes slow; here a person is watching, perhaps on a busy machine.
 */
enum { LEASE_MS = 3000 };

static const char *const host_names[HOSTS] = { "host-a", "host-b", "host-c", "host-d" };

/* The name makes this the same mutex in all processes on all hosts. */
static dmutex_t counter_mutex;

/* One demo at a time on one server: two would get each other's deaths reported. */
static dmutex_t turn_mutex = DMUTEX_INITIALIZER("demo/turn");

static void set_up_mutex(void)
{
    dmutexattr_t attr;

    dmutexattr_init(&attr);
    dmutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    dmutexattr_setlease_np(&attr, LEASE_MS);
    dmutex_init_np(&counter_mutex, "demo/counter", &attr);
}

/* ---- small things ------------------------------------------------------------------------ */

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void rest_ms(long ms)
{
    nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

static void die(const char *what, const char *why)
{
    fprintf(stderr, "demo: %s: %s\n", what, why);
    exit(1);
}

/* Checks a call of the operating system. */
static void must(bool is_done, const char *what)
{
    if (!is_done)
        die(what, strerror(errno));
}

/* Checks a call of the library. */
static void must_be_0(int result, const char *what)
{
    if (result != 0)
        die(what, dmutex_strerror_np());
}

/* ---- the counter ------------------------------------------------------------------------- */

/*
 * A text file with a line for each host's share and one for the total, all of the same length:
 *
 *     host-a         1250
 *     ...
 *     total          5000
 *
 * Invariant while no process holds the mutex: the total is the sum of the shares.
 */
enum { TOTAL = HOSTS, LINES, LINE_LENGTH = 20, NUMBER_AT = 8 };

static long read_number(int file, int line)
{
    char text[LINE_LENGTH + 1] = "";

    must(pread(file, text, LINE_LENGTH, line * LINE_LENGTH) == LINE_LENGTH, "reading the counter");
    return atol(text + NUMBER_AT);
}

static void write_number(int file, int line, long number)
{
    const char *label = line == TOTAL ? "total" : host_names[line];
    char text[40];

    snprintf(text, sizeof text, "%-8s%11ld\n", label, number);
    must(pwrite(file, text, LINE_LENGTH, line * LINE_LENGTH) == LINE_LENGTH, "writing the counter");
}

static long sum_of_shares(int file)
{
    long sum = 0;

    for (int host = 0; host < HOSTS; host++)
        sum += read_number(file, host);
    return sum;
}

static void make_counter(const char *path)
{
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    must(file >= 0, path);
    for (int line = 0; line < LINES; line++)
        write_number(file, line, 0);
    close(file);
}

static int open_counter(const char *path)
{
    int file = open(path, O_RDWR | O_CLOEXEC);

    must(file >= 0, path);
    return file;
}

/* ---- a worker: the process on each host -------------------------------------------------- */

enum news {
    PROGRESS,
    IN_MID_UPDATE, /* holds the mutex, has done half an update, and waits to be killed */
    REPAIRED,      /* got EOWNERDEAD and corrected the counter */
    FINISHED
};

/* A worker's report to the demo, short enough to be written to a pipe as a whole. */
struct report {
    int host;
    enum news news;
    long done;                        /* how much of its share is done */
    long held;                        /* how often this process has held the mutex */
    double waited_s, longest_s;       /* for the mutex: in total, and at most */
    long total_found, total_repaired; /* REPAIRED */
    double at_s;
};

struct worker {
    bool is_guarded;
    int file;
    struct report report;
};

static void tell(struct worker *me, enum news news)
{
    me->report.news = news;
    me->report.at_s = now_s();
    must(write(STDOUT_FILENO, &me->report, sizeof me->report) == sizeof me->report, "reporting");
}

/* An owner died, perhaps between its two writes: its share counts, and the total is too low. */
static void repair(struct worker *me)
{
    me->report.total_found = read_number(me->file, TOTAL);
    me->report.total_repaired = sum_of_shares(me->file);
    write_number(me->file, TOTAL, me->report.total_repaired);
    must_be_0(dmutex_consistent(&counter_mutex), "dmutex_consistent");
    tell(me, REPAIRED);
}

static void lock(struct worker *me)
{
    double before = now_s(), waited;
    int result = me->is_guarded ? dmutex_lock(&counter_mutex) : 0;

    waited = now_s() - before;
    me->report.held++;
    me->report.waited_s += waited;
    if (waited > me->report.longest_s)
        me->report.longest_s = waited;
    if (result == EOWNERDEAD)
        repair(me);
    else
        must_be_0(result, "dmutex_lock");
}

static void unlock(struct worker *me)
{
    if (me->is_guarded)
        must_be_0(dmutex_unlock(&counter_mutex), "dmutex_unlock");
}

static void add_one(struct worker *me)
{
    long share, total;

    lock(me);
    share = read_number(me->file, me->report.host);
    total = read_number(me->file, TOTAL);
    write_number(me->file, me->report.host, share + 1);
    me->report.done = share + 1;
    if (me->report.host == VICTIM && share + 1 == KILL_AT) {
        tell(me, IN_MID_UPDATE);
        for (;;)
            pause();
    }
    sched_yield(); /* stands for the work of a real update, and gives the others a chance */
    write_number(me->file, TOTAL, total + 1);
    unlock(me);
}

/* The demo holds the other end of standard input, and closes it when all are ready. */
static void await_start(void)
{
    char none;

    while (read(STDIN_FILENO, &none, 1) > 0)
        continue;
}

/* demo worker HOST guarded|unguarded FILE */
static int work(char **arguments)
{
    struct worker me = { .report.host = atoi(arguments[0]),
                         .is_guarded = strcmp(arguments[1], "guarded") == 0,
                         .file = open_counter(arguments[2]) };
    int is_locked;

    if (me.is_guarded) {
        set_up_mutex();
        dmutex_islocked_np(&counter_mutex, &is_locked); /* connects now instead of in the first lock */
    }
    await_start();
    me.report.done = read_number(me.file, me.report.host);
    while (me.report.done < SHARE) {
        add_one(&me);
        if (me.report.done % 50 == 0)
            tell(&me, PROGRESS);
    }
    tell(&me, FINISHED);
    return 0;
}

/* ---- the stage: a directory with a server ------------------------------------------------ */

static struct {
    pid_t demo; /* only this process removes the stage */
    char directory[32];
    pid_t server; /* 0: the server of DMUTEX_URL */
} stage;

static volatile sig_atomic_t is_interrupted;

static void interrupt(int number)
{
    (void)number;
    is_interrupted = 1;
}

static void clear_stage(void)
{
    if (getpid() != stage.demo)
        return;
    if (stage.server) {
        kill(stage.server, SIGTERM);
        waitpid(stage.server, NULL, 0);
    }
    if (chdir(stage.directory) == 0) {
        unlink("counter");
        unlink("log");
        unlink("s");
        rmdir(stage.directory);
    }
}

static void exec_server(void)
{
    static const char *const programs[] = { "redis-server", "valkey-server" };

    prctl(PR_SET_PDEATHSIG, SIGTERM);
    for (int i = 0; i < 2; i++)
        execlp(programs[i], programs[i], "--dir", stage.directory, "--unixsocket", "s", "--port", "0", "--save", "",
               "--appendonly", "no", "--maxmemory-policy", "noeviction", "--logfile", "log", (char *)NULL);
    _exit(127);
}

static bool is_answering(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool answers;

    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    answers = connect(probe, (struct sockaddr *)&address, sizeof address) == 0;
    close(probe);
    return answers;
}

static void start_server(void)
{
    char url[96], path[64];

    snprintf(path, sizeof path, "%s/s", stage.directory);
    snprintf(url, sizeof url, "unix://%s?grace=off", path); /* no process held a lock before the start */
    stage.server = fork();
    must(stage.server >= 0, "fork");
    if (stage.server == 0)
        exec_server();
    while (!is_answering(path)) {
        if (waitpid(stage.server, NULL, WNOHANG) == stage.server) {
            stage.server = 0;
            die("no server", "install redis-server or valkey-server, or set DMUTEX_URL");
        }
        rest_ms(5);
    }
    setenv("DMUTEX_URL", url, 1);
    printf("The server is a private one, %s\n", url);
}

static void await_turn(void)
{
    int result = dmutex_trylock(&turn_mutex);

    printf("The server is the one that DMUTEX_URL names%s.\n",
           result == EBUSY ? "; another demo uses it, waiting" : "");
    while (result == EBUSY && !is_interrupted) {
        rest_ms(100);
        result = dmutex_trylock(&turn_mutex);
    }
    must_be_0(result, "the server");
}

static void set_stage(void)
{
    struct sigaction action = { .sa_handler = interrupt };

    stage.demo = getpid();
    strcpy(stage.directory, "/tmp/dmutex-demo-XXXXXX");
    must(mkdtemp(stage.directory) != NULL, stage.directory);
    atexit(clear_stage);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    if (getenv("DMUTEX_URL"))
        await_turn();
    else
        start_server();
    set_up_mutex();
}

/* ---- a run ------------------------------------------------------------------------------- */

struct run {
    bool is_guarded;
    char path[64];
    double began_s;
    int start[2];   /* a pipe: the workers wait for its end */
    int reports[2]; /* a pipe: the workers' reports */
    pid_t pids[HOSTS];
    struct report last[HOSTS];
    struct report killed; /* the victim's last report */
    double killed_s;
    struct report repaired;
    int finished;
    long counted;
};

/* fork() and exec(): each worker is a program that is connected to the others only by the mutex's name. */
static void start_worker(struct run *run, int host)
{
    char number[12];

    run->pids[host] = fork();
    must(run->pids[host] >= 0, "fork");
    if (run->pids[host] > 0)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(run->start[0], STDIN_FILENO);
    dup2(run->reports[1], STDOUT_FILENO);
    setenv("DMUTEX_HOST", host_names[host], 1);
    snprintf(number, sizeof number, "%d", host);
    execl("/proc/self/exe", "demo", "worker", number, run->is_guarded ? "guarded" : "unguarded", run->path,
          (char *)NULL);
    _exit(127);
}

static void show_progress(const struct run *run)
{
    static long shown;
    bool is_terminal = isatty(STDOUT_FILENO);
    long done = 0;

    for (int host = 0; host < HOSTS; host++)
        done += run->last[host].done;
    if (!is_terminal && done / SHARE == shown / SHARE)
        return;
    shown = done;
    printf("%s  %6.3f s", is_terminal ? "\r\033[K" : "", now_s() - run->began_s);
    for (int host = 0; host < HOSTS; host++)
        printf("   %s %4ld", host_names[host], run->last[host].done);
    printf("   of %d%s", SHARE, is_terminal ? "" : "\n");
    fflush(stdout);
}

/* Begins the line of an event. */
static void begin_event(const struct run *run, double at_s)
{
    printf("%s  %6.3f s   ", isatty(STDOUT_FILENO) ? "\r\033[K" : "", at_s - run->began_s);
}

/* The server knows the owner's host, process and program, and anybody may ask. */
static void print_owner(void)
{
    dmutex_info_t info = { .struct_size = sizeof info };

    if (dmutex_getinfo_np(&counter_mutex, &info) == 0 && info.locked)
        printf("             the server still says: owned by %s, process %u, for %lld ms\n", info.host,
               (unsigned)info.pid, (long long)info.remaining_ms);
}

static void kill_victim(struct run *run)
{
    run->killed = run->last[VICTIM];
    run->killed_s = now_s();
    kill(run->pids[VICTIM], SIGKILL);
    waitpid(run->pids[VICTIM], NULL, 0);
    begin_event(run, run->killed_s);
    printf("%s is in the middle of update %d: killed with SIGKILL\n", host_names[VICTIM], KILL_AT);
    if (run->is_guarded)
        print_owner();
}

static void replace_victim(struct run *run)
{
    begin_event(run, now_s());
    printf("%s starts again and goes on with its share\n", host_names[VICTIM]);
    start_worker(run, VICTIM);
}

static void note_repaired(struct run *run, const struct report *report)
{
    if (!run->killed_s || run->repaired.at_s)
        return; /* another process died: an earlier demo on the same server */
    run->repaired = *report;
    begin_event(run, report->at_s);
    printf("%s gets EOWNERDEAD and repairs the total: %ld, not %ld\n", host_names[report->host], report->total_repaired,
           report->total_found);
    replace_victim(run);
}

static void take(struct run *run, const struct report *report)
{
    run->last[report->host] = *report;
    switch (report->news) {
    case PROGRESS:
        break;
    case IN_MID_UPDATE:
        kill_victim(run);
        if (!run->is_guarded)
            replace_victim(run); /* there is no waiter, so no process learns of the death */
        break;
    case REPAIRED:
        note_repaired(run, report);
        break;
    case FINISHED:
        run->finished++;
        break;
    }
}

static void check_children(const struct run *run)
{
    int status;

    if (is_interrupted)
        die("interrupted", "the counter was not finished");
    for (int host = 0; host < HOSTS; host++) {
        if (waitpid(run->pids[host], &status, WNOHANG) > 0 && status != 0)
            die(host_names[host], "ended early; no count is possible");
    }
}

/*
 * The owner's death is reported once. A victim that had lost the mutex already, and then is killed, leaves nothing to
 * report: nobody would start it again.
 */
static void check_victim(const struct run *run)
{
    if (run->is_guarded && run->finished == HOSTS - 1 && run->killed_s && !run->repaired.at_s)
        die(host_names[VICTIM], "had lost the mutex before it was killed: this machine is too busy for the lease");
}

static void begin_run(struct run *run)
{
    snprintf(run->path, sizeof run->path, "%s/counter", stage.directory);
    make_counter(run->path);
    must(pipe2(run->start, O_CLOEXEC) == 0 && pipe2(run->reports, O_CLOEXEC) == 0, "pipe");
    for (int host = 0; host < HOSTS; host++)
        start_worker(run, host);
    rest_ms(200); /* until all are ready; only the look of the output depends on it */
    run->began_s = now_s();
    close(run->start[1]);
}

static void end_run(struct run *run)
{
    int file = open_counter(run->path);

    show_progress(run);
    printf("%s", isatty(STDOUT_FILENO) ? "\n" : "");
    run->counted = read_number(file, TOTAL);
    close(file);
    close(run->start[0]);
    close(run->reports[0]);
    close(run->reports[1]);
    for (int host = 0; host < HOSTS; host++)
        waitpid(run->pids[host], NULL, 0);
}

static void do_run(struct run *run)
{
    struct pollfd poller;
    struct report report;

    printf("\n%s\n", run->is_guarded ? "Under the mutex \"demo/counter\":" : "Without a mutex:");
    begin_run(run);
    poller = (struct pollfd){ .fd = run->reports[0], .events = POLLIN };
    while (run->finished < HOSTS) {
        if (poll(&poller, 1, 100) > 0) {
            must(read(poller.fd, &report, sizeof report) == sizeof report, "reading a report");
            take(run, &report);
            check_victim(run);
        } else {
            check_children(run);
        }
        show_progress(run);
    }
    end_run(run);
}

/* ---- the end ----------------------------------------------------------------------------- */

static void print_host(const struct report *report, const char *remark)
{
    printf("%-8s %8ld %14.3f %14.3f%s\n", host_names[report->host], report->held,
           report->waited_s * 1000 / (double)report->held, report->longest_s * 1000, remark);
}

static void print_table(const struct run *with, const struct run *without)
{
    printf("\n%-8s %8s %14s %14s\n", "", "held", "mean wait, ms", "longest, ms");
    for (int host = 0; host < HOSTS; host++) {
        if (host == VICTIM)
            print_host(&with->killed, "   killed while it held the mutex");
        print_host(&with->last[host], host == VICTIM ? "   started again" : "");
    }
    printf("\nRecovery took %.3f s: from the kill until %s had repaired the total.\n"
           "(The mutex of a dead owner is free when its lease ends, here %.1f s.)\n",
           with->repaired.at_s - with->killed_s, host_names[with->repaired.host], LEASE_MS / 1000.0);
    printf("\n%-18s %16s %16s\n", "", "under the mutex", "under nothing");
    printf("%-18s %16d %16d\n", "added", ALL, ALL);
    printf("%-18s %16ld %16ld\n", "counted", with->counted, without->counted);
    printf("%-18s %16ld %16ld\n", "lost", ALL - with->counted, ALL - without->counted);
}

int main(int argc, char **argv)
{
    static struct run with = { .is_guarded = true }, without;

    if (argc == 5 && strcmp(argv[1], "worker") == 0)
        return work(argv + 2);
    printf("libdmutex %s: %d hosts add to a counter in a file, %d times each.\n", dmutex_version_np(), HOSTS, SHARE);
    set_stage();
    do_run(&with);
    do_run(&without);
    dmutex_unlock(&turn_mutex);
    print_table(&with, &without);
    printf("\n%s\n",
           with.counted == ALL ? "The count under the mutex is exact." : "The count under the mutex is WRONG.");
    return with.counted == ALL ? 0 : 1;
}
