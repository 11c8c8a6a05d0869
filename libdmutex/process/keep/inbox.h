/* SPDX-License-Identifier: BSD-2-Clause */
/* The process's one inbox: messages of the store become events of the core. */
#ifndef DM_PROCESS_KEEP_INBOX_H
#define DM_PROCESS_KEEP_INBOX_H

struct dm_message;

/* A dm_host.on_message; user is the struct dm_runtime. */
void dm_inbox_take(void *user, const struct dm_message *message);

#endif
