/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A terminal that is drawn over again and again, and whose keys are read one by one, without an echo.
 *
 * Every way out leaves the terminal as it was: screen_end(), a signal that ends the program, and a stop by ^Z, after
 * which `fg` goes on as before.  Only SIGKILL and SIGSTOP cannot be helped.
 */
#ifndef DM_TOOLS_SCREEN_H
#define DM_TOOLS_SCREEN_H

#include <stdbool.h>

/* Standard output must be a terminal; keys are read if standard input is one, too. */
void screen_begin(void);
void screen_end(void);

/* The size of the terminal behind standard output; 80 and 24 if it does not tell. */
int screen_columns(void);
int screen_rows(void);

/* Drawing begins at the upper left corner, and long lines are cut, not wrapped; then all below is cleared. */
void screen_draw(void);
void screen_drawn(void);

enum screen_event {
    SCREEN_TIME,   /* the time has passed */
    SCREEN_RESIZE, /* the screen is to be drawn again: it has another size, or the program was stopped */
    SCREEN_KEY     /* a key was pressed */
};

/* Waits for the first of these, for so many seconds at most. */
enum screen_event screen_await(double seconds, char *ret_key);

#endif
