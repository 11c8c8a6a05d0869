/* SPDX-License-Identifier: BSD-2-Clause */
/* The process's one inbox: messages of the server become events of the core. */
#ifndef DM_RUNTIME_INBOX_H
#define DM_RUNTIME_INBOX_H

struct dm_server;

/* A dm_conn_hooks.on_message; user is the struct dm_runtime. */
void dm_inbox_take(void *user, const char *text, const struct dm_server *server);

#endif
