/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dmutex-keeper SOCKET: keeps the distributed locks of lock files (doc/design/preload.md). The module of a preloaded
 * program starts it, with the socket that SOCKET names and the socket's folder; it has no other use.
 */
#include <dmutex/dmutex.h>

#include <errno.h>
#include <glib.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "caller.h"
#include "holds.h"
#include "life.h"
#include "probe.h"
#include "say.h"
#include "shared/keeper_talk.h"
#include "shared/text.h"

#define TEXTS 10

/* ---- questions --------------------------------------------------------------------------- */

/*
 * Returns the number of texts, which point into the question. The last one is terminated, because caller.c has put a
 * NUL after the question. Texts beyond TEXTS are left out.
 */
static int split(const char *question, size_t length, const char *ret_texts[TEXTS])
{
    const char *end = question + length;
    int count = 0;

    for (; question < end && count < TEXTS; question += strlen(question) + 1)
        ret_texts[count++] = question;
    return count;
}

static bool read_number(const char *text, unsigned limit, unsigned *ret_number)
{
    uint64_t number;

    if (!text_number(text, &number) || number > limit)
        return false;
    *ret_number = (unsigned)number;
    return true;
}

/*
 * try|wait new|again LEASE LINGER DOWN LOST KERNEL-LOCK NAME PATH
 *
 * Numbers are checked here, because two of them become an enum and a signal; the library checks lease and linger. Any
 * word other than "try" and "again" means the alternative: the module of this version writes both, and KEEPER_VERSION
 * keeps other versions out.
 */
static bool read_wish(const char *const texts[], struct wish *ret_wish)
{
    unsigned on_down, on_lost;

    if (!read_number(texts[2], UINT_MAX, &ret_wish->lease_ms) ||
        !read_number(texts[3], UINT_MAX, &ret_wish->linger_ms) || !read_number(texts[4], DOWN_LOCAL, &on_down) ||
        !read_number(texts[5], NSIG - 1, &on_lost) || !kernel_lock_parse(texts[6], &ret_wish->lock))
        return false;
    ret_wish->is_try = strcmp(texts[0], "try") == 0;
    ret_wish->is_again = strcmp(texts[1], "again") == 0;
    ret_wish->on_down = (enum rule_on_down)on_down;
    ret_wish->on_lost = (int)on_lost;
    ret_wish->name = texts[7];
    ret_wish->path = texts[8];
    return true;
}

/* F_GETLK on a file that the keeper itself holds needs no server: on this host the kernel knows better. */
static void on_test(struct caller *caller, const char *name, const char *path)
{
    switch (holds_who(name, path)) {
    case HOLDS_FOR_FILE:
        caller_answer(caller, "free");
        break;
    case HOLDS_FOR_OTHER:
        caller_answer(caller, "held");
        break;
    case HOLDS_NOTHING:
        probe_start(caller, name);
        break;
    }
}

static void on_list(struct caller *caller)
{
    g_autoptr(GString) lines = g_string_new(NULL);

    holds_list(lines);
    caller_answer_text(caller, lines);
}

/*
 * "unlock" has no answer: the module does not wait, and the check finds out whether a lock has ended. An unknown
 * question does get an answer, because the asking process would wait forever.
 */
static void on_question(struct caller *caller, const char *question, size_t length)
{
    const char *texts[TEXTS];
    int count = split(question, length, texts);
    struct wish wish;

    if (count == 10 && strcmp(texts[0], "lock") == 0 && read_wish(texts + 1, &wish)) {
        holds_ask(caller, &wish);
    } else if (count == 3 && strcmp(texts[0], "test") == 0) {
        on_test(caller, texts[1], texts[2]);
    } else if (count == 1 && strcmp(texts[0], KEEPER_LIST) == 0) {
        on_list(caller);
    } else if (count == 1 && strcmp(texts[0], "unlock") == 0) {
        holds_on_unlock();
        caller_dismiss(caller);
    } else if (count == 1 && strcmp(texts[0], "settle") == 0) {
        caller_answer(caller, "ok"); /* the main loop looks, or answers */
    } else {
        say(DMUTEX_LOG_ERROR, "process %d asks what nobody understands", (int)caller_pid(caller));
        caller_fail(caller, ENOLCK, "the keeper of lock files does not understand the question");
    }
}

/* ---- the process ------------------------------------------------------------------------- */

/*
 * The keeper ends when nothing is locked any more, and not before: when a service or the machine is shut down, all
 * processes are signalled, but those with locks here may have work to finish. SIGPIPE is ignored because the reader of
 * a standard error may be gone; SIGXCPU and SIGXFSZ because the first program may have had limits that its user cannot
 * raise.
 */
static void ignore_signals(void)
{
    static const int ignored[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2, SIGXCPU, SIGXFSZ };

    for (size_t i = 0; i < G_N_ELEMENTS(ignored); i++)
        signal(ignored[i], SIG_IGN);
}

/*
 * Reads the URL from the pipe, if there is one; it is in no environment, which other processes could read. The bytes
 * are wiped, because the URL may contain a password; the library has its own copy. This comes before the first use of a
 * mutex, after which the library accepts no URL.
 *
 * The program may have read the URL as root, and be another user now. The kernel keeps that user's other processes away
 * from the program's memory, and must keep them away from the keeper's.
 */
static void take_url(void)
{
    char url[4096];
    struct stat status;
    ssize_t length;

    if (fstat(KEEPER_URL_FD, &status) < 0 || !S_ISFIFO(status.st_mode))
        return;
    prctl(PR_SET_DUMPABLE, 0);
    length = read(KEEPER_URL_FD, url, sizeof url - 1);
    if (length <= 0)
        return;
    url[length] = '\0';
    close(KEEPER_URL_FD);
    if (dmutex_configure_np(url) != 0)
        say(DMUTEX_LOG_ERROR, "%s", dmutex_strerror_np());
    explicit_bzero(url, sizeof url);
}

/*
 * OnDown and OnLost of dmutex.conf are not for the keeper, which holds locks for others and does what the rules say.
 * The variables override the keys.
 */
static void settle_settings(void)
{
    setenv("DMUTEX_ONLOST", "log", 1);
    setenv("DMUTEX_ONDOWN", "wait", 1);
}

/* False if a person has started the keeper by hand. */
static bool is_listening(int fd)
{
    int yes = 0;
    socklen_t size = sizeof yes;

    return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &yes, &size) == 0 && yes;
}

/*
 * Runs in "/", so that the keeper does not prevent a file system from being unmounted. Signals, URL and log are set up
 * before the first thread.
 */
int main(int argc, char **argv)
{
    if (argc != 2 || !is_listening(KEEPER_SOCKET_FD)) {
        fputs(KEEPER_PROGRAM " is started by programs that dmutex-run has started: see dmutex-run(1)\n", stderr);
        return 2;
    }
    take_url();
    if (chdir("/") < 0)
        return 1;
    ignore_signals();
    settle_settings();
    say_begin();
    say(DMUTEX_LOG_INFO, "listening on %s", argv[1]);
    holds_begin();
    callers_begin(on_question);
    life_run(text_basename(argv[1]));
    say(DMUTEX_LOG_INFO, "nothing is locked any more");
    return 0;
}
