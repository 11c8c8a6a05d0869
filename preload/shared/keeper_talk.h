/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages between the module and dmutex-keeper, over SOCK_SEQPACKET: one question per connection, and at most one
 * answer. A message is a sequence of texts, each ended by a NUL. Numbers are decimal.
 *
 *     lock try|wait new|again LEASE LINGER DOWN LOST KERNEL-LOCK NAME PATH
 *                                               ok | busy | errno NUMBER SENTENCE
 *     test NAME PATH                            free | held | errno NUMBER SENTENCE
 *     unlock                                    (none)
 *     settle                                    ok: earlier checks are finished
 *     holders                                   one text: lines of NAME PATH PID PROGRAM
 *
 * LEASE, LINGER, DOWN, LOST: as in struct rule. KERNEL-LOCK: as kernel_lock_write() writes it.
 *
 * Descriptors come with `lock` (SCM_RIGHTS): the locked file, by O_PATH, because an open file would keep the lock; and
 * the caller's standard error, unless it is closed.
 */
#ifndef DM_PRELOAD_KEEPER_TALK_H
#define DM_PRELOAD_KEEPER_TALK_H

/* Changed whenever the messages change, so that a new module finds no old keeper. */
#define KEEPER_VERSION "4"

#define KEEPER_PROGRAM "dmutex-keeper"

/* In the folder; guards making and removing the keepers' sockets. */
#define KEEPER_GUARD "keeper.lock"

/*
 * The descriptors of a new keeper: the listening socket, the folder that contains its name, and a pipe with the
 * server's URL, if that is not in DMUTEX_URL.
 */
enum { KEEPER_SOCKET_FD = 3, KEEPER_FOLDER_FD, KEEPER_URL_FD, KEEPER_FREE_FD };

/* How the name of a socket begins, in the folder; a number follows. */
#define KEEPER_SOCKET_PREFIX "keeper-0x"

#define KEEPER_LIST "holders"
#define KEEPER_LIST_ROOM 65536

enum { KEEPER_GIFT_FILE, KEEPER_GIFT_STDERR, KEEPER_GIFTS };

#define KEEPER_QUESTION_ROOM 8192
#define KEEPER_ANSWER_ROOM 512

#endif
