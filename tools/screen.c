/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SIGWINCH and SIGCONT are blocked except while the program waits, so that none is missed.  The signals that end or
 * stop the program are taken at any time, because reading from a slow server takes long.  Their handlers use only what
 * POSIX allows in a handler.
 */
#include "screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/attrs.h"

#define CUT_LINES "\033[?7l"
#define WRAP_LINES "\033[?7h"

static struct termios cooked, raw;
static bool has_mode, has_keys; /* standard input is a terminal; and has not hung up */
static sigset_t waiting_mask;
static volatile sig_atomic_t must_draw;

/* ---- the terminal's mode ----------------------------------------------------------------- */

/* In the background, changing the mode would stop the program. */
static bool is_in_front(void)
{
    return tcgetpgrp(STDIN_FILENO) == getpgrp();
}

static void use_raw(void)
{
    if (has_mode && is_in_front())
        tcsetattr(STDIN_FILENO, TCSANOW, &raw);
}

/* Leaves a half-drawn line as it is: the shell draws its prompt over it. */
static void use_cooked(void)
{
    ssize_t ignored = write(STDOUT_FILENO, WRAP_LINES, sizeof WRAP_LINES - 1);

    (void)ignored;
    if (has_mode && is_in_front())
        tcsetattr(STDIN_FILENO, TCSANOW, &cooked);
}

/* ---- signals ----------------------------------------------------------------------------- */

static void redraw(int number)
{
    int kept = errno;

    if (number == SIGCONT)
        use_raw();
    must_draw = 1;
    errno = kept;
}

/* The default action follows: the handler was reset, and the signal is not blocked. */
static void leave(int number)
{
    use_cooked();
    raise(number);
}

static void set(int number, void (*handler)(int), int flags)
{
    struct sigaction action = { .sa_handler = handler, .sa_flags = flags };

    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

static void stop(int number)
{
    int kept = errno;

    use_cooked();
    raise(number);
    set(number, stop, (int)SA_RESETHAND | SA_NODEFER); /* resumed by SIGCONT; the mode is set again */
    use_raw();
    errno = kept;
}

/* A signal that our parent ignores stays ignored. */
static void take(int number, void (*handler)(int))
{
    struct sigaction action;

    if (sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_IGN)
        set(number, handler, (int)SA_RESETHAND | SA_NODEFER);
}

static void take_signals(void)
{
    static const int endings[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE };
    sigset_t later;

    sigemptyset(&later);
    sigaddset(&later, SIGWINCH);
    sigaddset(&later, SIGCONT);
    pthread_sigmask(SIG_BLOCK, &later, &waiting_mask);
    set(SIGWINCH, redraw, 0);
    set(SIGCONT, redraw, 0);
    take(SIGTSTP, stop);
    for (size_t i = 0; i < DM_COUNT(endings); i++)
        take(endings[i], leave);
}

/* ---- the screen -------------------------------------------------------------------------- */

void screen_begin(void)
{
    has_mode = has_keys = isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &cooked) == 0;
    if (has_mode) {
        raw = cooked;
        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        raw.c_cc[VMIN] = 1;
        raw.c_cc[VTIME] = 0;
    }
    take_signals();
    use_raw();
}

void screen_end(void)
{
    fflush(stdout);
    use_cooked();
}

static struct winsize size_of_terminal(void)
{
    struct winsize size = { 0 };

    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    return size;
}

int screen_columns(void)
{
    int columns = size_of_terminal().ws_col;

    return columns ? columns : 80;
}

int screen_rows(void)
{
    int rows = size_of_terminal().ws_row;

    return rows ? rows : 24;
}

void screen_draw(void)
{
    fputs(CUT_LINES "\033[H", stdout);
}

void screen_drawn(void)
{
    fputs("\033[J" WRAP_LINES, stdout);
    fflush(stdout);
}

/* A terminal that has hung up has no more keys, but would be readable forever. */
static bool read_key(char *ret_key)
{
    ssize_t got = read(STDIN_FILENO, ret_key, 1);

    has_keys = got == 1 || (got < 0 && errno == EINTR);
    return got == 1;
}

enum screen_event screen_await(double seconds, char *ret_key)
{
    struct timespec left = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };
    struct pollfd keys = { .fd = has_keys && is_in_front() ? STDIN_FILENO : -1, .events = POLLIN };
    int ready = ppoll(&keys, 1, &left, &waiting_mask);

    if (must_draw) {
        must_draw = 0;
        return SCREEN_RESIZE;
    }
    return ready == 1 && read_key(ret_key) ? SCREEN_KEY : SCREEN_TIME;
}
