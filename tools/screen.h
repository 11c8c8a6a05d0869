/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A terminal screen that is redrawn repeatedly.  Its keys are read one by one, without echo.
 *
 * Every way out restores the terminal: screen_end(), a signal that ends the program, and a stop by ^Z, after which `fg`
 * continues as before.  Nothing can be done about SIGKILL and SIGSTOP.
 */
#ifndef DM_TOOLS_SCREEN_H
#define DM_TOOLS_SCREEN_H

#include <stdbool.h>

/* Standard output must be a terminal.  Keys are read if standard input is a terminal, too. */
void screen_begin(void);
void screen_end(void);

/* The size of the terminal at standard output; 80 and 24 if it is not known. */
int screen_columns(void);
int screen_rows(void);

/* Starts drawing at the upper left corner; long lines are cut, not wrapped. screen_done() clears everything below. */
void screen_draw(void);
void screen_drawn(void);

enum screen_event {
    SCREEN_TIME,   /* the time is up */
    SCREEN_RESIZE, /* redraw: the size has changed, or the program was stopped */
    SCREEN_KEY     /* a key was pressed */
};

/* Waits for the first of these events, at most `seconds`. */
enum screen_event screen_await(double seconds, char *ret_key);

#endif
