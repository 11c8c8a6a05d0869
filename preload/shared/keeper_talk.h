/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages between the module and dmutex-keeper, over SOCK_SEQPACKET: one question for each connection, one answer at
 * most. A message is some texts, each with a NUL. Numbers are decimal.
 *
 *     lock try|wait new|again LEASE LINGER DOWN LOST KERNEL-LOCK NAME PATH
 *                                               ok | busy | errno NUMBER SENTENCE
 *     test NAME PATH                            free | held | errno NUMBER SENTENCE
 *     unlock                                    (none)
 *     settle                                    ok: the looks before are over
 *     holders                                   one text: lines of NAME PATH PID PROGRAM
 *
 * LEASE, LINGER, DOWN, LOST: as in struct rule. KERNEL-LOCK: as kernel_lock_write() writes.
 *
 * Descriptors come with `lock` (SCM_RIGHTS): the locked file, by O_PATH, because an open one would keep the lock; and
 * the caller's standard error, unless it is closed.
 */
#ifndef DM_PRELOAD_KEEPER_TALK_H
#define DM_PRELOAD_KEEPER_TALK_H

/* Another number when the words change: a new module finds no old keeper. */
#define KEEPER_VERSION "4"

#define KEEPER_PROGRAM "dmutex-keeper"

/* In the folder; guards the making and the removal of keepers' sockets. */
#define KEEPER_GUARD "keeper.lock"

/*
 * Descriptors at a keeper's start: the listening socket, the folder with the socket's name, and a pipe with the
 * server's URL, if the URL is not in DMUTEX_URL.
 */
enum { KEEPER_SOCKET_FD = 3, KEEPER_FOLDER_FD, KEEPER_URL_FD, KEEPER_FREE_FD };

/* The beginning of a socket's name, in the folder, before a number. */
#define KEEPER_SOCKET_PREFIX "keeper-0x"

#define KEEPER_LIST "holders"
#define KEEPER_LIST_ROOM 65536

enum { KEEPER_GIFT_FILE, KEEPER_GIFT_STDERR, KEEPER_GIFTS };

#define KEEPER_QUESTION_ROOM 8192
#define KEEPER_ANSWER_ROOM 512

#endif
