/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program without distributed locks: locks a file in every way, and prints the results. `locker FILE WORD...` carries
 * out each word in turn:
 *
 *     flock flock-try flock-un flock-sh            by flock()
 *     setlkw setlk unlck rdlck get                 by fcntl(), the whole file
 *     ofd-setlkw ofd-setlk ofd-unlck ofd-get
 *     lockf tlock ulock ltest                      by lockf()
 *     part last                                    bytes 10 to 14; the whole file, counted from SEEK_END
 *     reopen close-other dup                       opens a new descriptor for the next words; opens and closes; dup()
 *     send receive                                 the file goes into a socket, and comes out to be closed
 *     fork                                         a child continues; the parent ends by _exit() at once
 *     fork-wait                                    a child continues; the parent continues when the child has ended
 *     wait                                         for a line
 *     handle handle-restart                        SIGALRM has a handler, without or with SA_RESTART
 *     handler                                      the next word is carried out in a signal handler
 *     cancel                                       a thread does the next word, and is cancelled after a line of input
 *     children                                     the number of SIGCHLD so far, and whether there is a child
 *     count N                                      N times: lock, add 1 to the number in COUNTER, unlock
 *     many N                                       locks N more files by flock(): 0.lock, 1.lock ...
 *     term                                         SIGTERM has a handler
 *     drop                                         becomes user 61234
 *     quiet                                        has /dev/null as input and outputs from now on
 *     data                                         closes standard error, and opens the file "data" in its place
 *     pause                                        for a signal
 *     filter                                       pidfd_send_signal() is EPERM from now on, as in some containers
 *     plain                                        socket() is EAFNOSUPPORT from now on, as in some units
 *     say WORD
 *     thread                                       a thread continues, and the first thread ends
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/filter.h"

static const char *path;
static int file;
static volatile sig_atomic_t children;

static void print(const char *word, int result)
{
    printf("%s %s\n", word, result == 0 ? "0" : strerrorname_np(errno));
    fflush(stdout);
}

/* ---- locks ------------------------------------------------------------------------------- */

static int by_fcntl(int command, short type)
{
    struct flock lock = { .l_type = type, .l_whence = SEEK_SET };

    return fcntl(file, command, &lock);
}

static int of_part(void)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 10, .l_len = 5 };

    return fcntl(file, F_SETLK, &lock);
}

static int of_all_from_end(void)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_END, .l_start = -lseek(file, 0, SEEK_END) };

    return fcntl(file, F_SETLK, &lock);
}

static void get(const char *word, int command)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    int result = fcntl(file, command, &lock);

    if (result < 0)
        print(word, result);
    else if (lock.l_type == F_UNLCK)
        printf("%s free\n", word);
    else
        printf("%s %s\n", word, lock.l_pid == -1 ? "far" : "here");
    fflush(stdout);
}

/* ---- processes and signals --------------------------------------------------------------- */

static void on_child(int number)
{
    (void)number;
    children++;
}

static void on_alarm(int number)
{
    (void)number;
}

static void handle(int flags)
{
    struct sigaction action = { .sa_handler = on_alarm, .sa_flags = flags };

    sigaction(SIGALRM, &action, NULL);
}

static void tell_children(void)
{
    pid_t pid = waitpid(-1, NULL, WNOHANG);

    printf("children %d %s\n", (int)children, pid < 0 && errno == ECHILD ? "none" : "some");
    fflush(stdout);
}

static void be_quiet(void)
{
    int null = open("/dev/null", O_RDWR);

    for (int fd = 0; fd < 3; fd++)
        dup2(null, fd);
}

static void open_data(void)
{
    close(2);
    if (open("data", O_RDWR | O_CREAT, 0600) != 2)
        exit(3);
}

static void filter_call(long call, int error)
{
    if (!filter_refuse(call, error))
        exit(3);
}

static void fork_off(int is_awaited)
{
    pid_t pid = fork();

    if (pid == 0)
        return;
    if (!is_awaited)
        _exit(0);
    waitpid(pid, NULL, 0);
}

static void await_line(void)
{
    char byte = '\0';
    ssize_t got;

    do
        got = read(0, &byte, 1);
    while ((got == 1 && byte != '\n') || (got < 0 && errno == EINTR));
}

/* ---- words ------------------------------------------------------------------------------- */

static void add_one(const char *counter)
{
    FILE *stream = fopen(counter, "r+");
    int number = 0;

    if (fscanf(stream, "%d", &number) != 1)
        exit(3);
    rewind(stream);
    fprintf(stream, "%d\n", number + 1);
    fclose(stream);
}

static void count(int times)
{
    for (int i = 0; i < times; i++) {
        if (flock(file, LOCK_EX) < 0)
            exit(4);
        add_one(getenv("COUNTER"));
        if (flock(file, LOCK_UN) < 0)
            exit(5);
    }
}

static void lock_many(int files)
{
    char name[24];

    for (int i = 0; i < files; i++) {
        snprintf(name, sizeof name, "%d.lock", i);
        if (flock(open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600), LOCK_EX) < 0)
            exit(4);
    }
}

static void on_term(int number)
{
    (void)number;
}

static const char *const *next;

static void do_next(void);

static void in_handler(int number)
{
    (void)number;
    do_next();
}

static void *in_thread(void *unused)
{
    do_next();
    return unused;
}

static void *go_on(void *unused)
{
    (void)unused;
    while (*next)
        do_next();
    exit(0);
}

static void go_on_in_thread(void)
{
    pthread_t thread;

    pthread_create(&thread, NULL, go_on, NULL);
    pthread_exit(NULL);
}

static void cancel_next(void)
{
    pthread_t thread;
    void *result;

    pthread_create(&thread, NULL, in_thread, NULL);
    await_line();
    pthread_cancel(thread);
    pthread_join(thread, &result);
    printf("cancel %s\n", result == PTHREAD_CANCELED ? "0" : "too late");
    fflush(stdout);
}

static void reopen(void)
{
    file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

static int socket_ends[2];

/* One descriptor with one byte. */
union gift {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof file)];
};

static void send_file(void)
{
    union gift gift = { .header = {
                            .cmsg_len = CMSG_LEN(sizeof file), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
    struct iovec byte = { .iov_base = (char[]){ 'f' }, .iov_len = 1 };
    struct msghdr message = { .msg_iov = &byte, .msg_iovlen = 1, .msg_control = &gift, .msg_controllen = sizeof gift };

    memcpy(CMSG_DATA(&gift.header), &file, sizeof file);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, socket_ends) < 0 || sendmsg(socket_ends[0], &message, 0) < 0)
        exit(3);
    close(file);
}

/* The kernel closes a descriptor for which there is no room. */
static void receive_file(void)
{
    char byte;

    if (recv(socket_ends[1], &byte, 1, 0) != 1)
        exit(3);
}

/* The mapping keeps the file open. */
static void map_file(void)
{
    if (mmap(NULL, 1, PROT_READ, MAP_SHARED, file, 0) == MAP_FAILED)
        exit(3);
    close(file);
}

static int do_lock(const char *word, int *ret_result)
{
    static const struct {
        const char *word;
        int command;
        short type;
    } ways[] = {
        { "setlkw", F_SETLKW, F_WRLCK },       { "setlk", F_SETLK, F_WRLCK },
        { "unlck", F_SETLK, F_UNLCK },         { "ofd-setlkw", F_OFD_SETLKW, F_WRLCK },
        { "ofd-setlk", F_OFD_SETLK, F_WRLCK }, { "ofd-unlck", F_OFD_SETLK, F_UNLCK },
        { "rdlck", F_SETLK, F_RDLCK },
    };
    static const struct {
        const char *word;
        int operation;
    } flocks[] = {
        { "flock", LOCK_EX }, { "flock-try", LOCK_EX | LOCK_NB }, { "flock-un", LOCK_UN }, { "flock-sh", LOCK_SH }
    };
    static const struct {
        const char *word;
        int function;
    } lockfs[] = { { "lockf", F_LOCK }, { "tlock", F_TLOCK }, { "ulock", F_ULOCK }, { "ltest", F_TEST } };

    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
        if (strcmp(word, ways[i].word) == 0)
            return *ret_result = by_fcntl(ways[i].command, ways[i].type), 1;
    for (size_t i = 0; i < sizeof flocks / sizeof flocks[0]; i++)
        if (strcmp(word, flocks[i].word) == 0)
            return *ret_result = flock(file, flocks[i].operation), 1;
    for (size_t i = 0; i < sizeof lockfs / sizeof lockfs[0]; i++)
        if (strcmp(word, lockfs[i].word) == 0)
            return *ret_result = lockf(file, lockfs[i].function, 0), 1;
    if (strcmp(word, "part") == 0)
        return *ret_result = of_part(), 1;
    if (strcmp(word, "last") == 0)
        return *ret_result = of_all_from_end(), 1;
    return 0;
}

static void do_other(const char *word)
{
    if (strcmp(word, "get") == 0)
        get(word, F_GETLK);
    else if (strcmp(word, "ofd-get") == 0)
        get(word, F_OFD_GETLK);
    else if (strcmp(word, "reopen") == 0)
        reopen();
    else if (strcmp(word, "close-other") == 0)
        close(open(path, O_RDONLY));
    else if (strcmp(word, "dup") == 0)
        file = dup(file);
    else if (strcmp(word, "send") == 0)
        send_file();
    else if (strcmp(word, "receive") == 0)
        receive_file();
    else if (strcmp(word, "map") == 0)
        map_file();
    else if (strcmp(word, "fork") == 0 || strcmp(word, "fork-wait") == 0)
        fork_off(strcmp(word, "fork-wait") == 0);
    else if (strcmp(word, "wait") == 0)
        await_line();
    else if (strcmp(word, "handle") == 0 || strcmp(word, "handle-restart") == 0)
        handle(strcmp(word, "handle-restart") == 0 ? SA_RESTART : 0);
    else if (strcmp(word, "handler") == 0)
        signal(SIGUSR1, in_handler), raise(SIGUSR1);
    else if (strcmp(word, "cancel") == 0)
        cancel_next();
    else if (strcmp(word, "thread") == 0)
        go_on_in_thread();
    else if (strcmp(word, "children") == 0)
        tell_children();
    else if (strcmp(word, "count") == 0)
        count(atoi(*next++));
    else if (strcmp(word, "many") == 0)
        lock_many(atoi(*next++));
    else if (strcmp(word, "term") == 0)
        signal(SIGTERM, on_term);
    else if (strcmp(word, "drop") == 0)
        print(word, setuid(61234));
    else if (strcmp(word, "quiet") == 0)
        be_quiet();
    else if (strcmp(word, "data") == 0)
        open_data();
    else if (strcmp(word, "pause") == 0)
        pause();
    else if (strcmp(word, "filter") == 0)
        filter_call(SYS_pidfd_send_signal, EPERM);
    else if (strcmp(word, "plain") == 0)
        filter_call(SYS_socket, EAFNOSUPPORT);
    else if (strcmp(word, "say") == 0)
        puts(*next++), fflush(stdout);
    else
        exit(2);
}

static void do_next(void)
{
    const char *word = *next++;
    int result;

    errno = 0;
    if (do_lock(word, &result))
        print(word, result);
    else
        do_other(word);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    signal(SIGCHLD, on_child);
    path = argv[1];
    reopen();
    next = (const char *const *)argv + 2;
    while (*next)
        do_next();
    return 0;
}
