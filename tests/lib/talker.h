/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A server whose words a test chooses, at a port of 127.0.0.1: it has a thread for each connection.  There is one at a
 * time.
 */
#ifndef TEST_TALKER_H
#define TEST_TALKER_H

#include <hiredis.h>
#include <stdbool.h>
#include <stddef.h>

/* A connection.  say() and hear() are send() and recv() unless receive() sets others. */
struct guest {
    int fd;
    bool (*say)(struct guest *guest, const char *bytes, size_t length);
    long (*hear)(struct guest *guest, char *bytes, size_t room);
    void *tls;
    bool is_silent; /* gives no answer any more */
};

/* `receive` is called for each connection, in its thread; the descriptor is closed afterwards.  Returns the port. */
int talker_begin(void (*receive)(struct guest *guest));

/* Closes the door, and waits until all connections have ended; receive() asks for the end meanwhile. */
void talker_end(void);
bool talker_is_over(void);

/* False, as say(): the client has gone, or takes nothing for a second. */
bool talker_say_text(struct guest *guest, const char *text);

/* Calls serve() for each command of the client, until it says false or the client goes. */
void talker_converse(struct guest *guest, bool (*serve)(struct guest *guest, const redisReply *command));

bool talker_is(const redisReply *command, const char *word);

/* A script about a mutex, not a probe of rights. */
bool talker_is_script(const redisReply *command);

/*
 * What a server says that grants the mutex "held" once: it is silent after a later script about it, and other mutexes
 * are busy.  "": it is silent; NULL: the command is unknown.
 */
const char *talker_answer(struct guest *guest, const redisReply *command);

#endif
