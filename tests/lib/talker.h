/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A server that says what a test wants, at a port of 127.0.0.1, with a thread for each connection.  There is only one
 * at a time.
 */
#ifndef TEST_TALKER_H
#define TEST_TALKER_H

#include <hiredis.h>
#include <stdbool.h>
#include <stddef.h>

/* A connection. say() and hear() are send() and recv() unless receive() sets others. */
struct guest {
    int fd;
    bool (*say)(struct guest *guest, const char *bytes, size_t length);
    long (*hear)(struct guest *guest, char *bytes, size_t room);
    void *tls;
    bool is_silent; /* no longer answers */
};

/* `receive` is called for each connection, in its thread; afterwards the descriptor is closed.  Returns the port. */
int talker_begin(void (*receive)(struct guest *guest));

/* Accepts no more connections, and waits until all have ended; meanwhile talker_is_over() tells receive() to end. */
void talker_end(void);
bool talker_is_over(void);

/* Like say(), returns false if the client has gone, or reads nothing for a second. */
bool talker_say_text(struct guest *guest, const char *text);

/* Calls serve() for each command of the client, until it returns false or the client goes. */
void talker_converse(struct guest *guest, bool (*serve)(struct guest *guest, const redisReply *command));

bool talker_is(const redisReply *command, const char *word);

/* True for a script about a mutex, but not for a probe of rights. */
bool talker_is_script(const redisReply *command);

/*
 * What a server says that grants the mutex "held" once, but is silent after a later script about it; other mutexes are
 * busy.  "": it is silent; NULL: the command is unknown.
 */
const char *talker_answer(struct guest *guest, const redisReply *command);

#endif
