/* SPDX-License-Identifier: BSD-2-Clause */
/* An ask() made of submit() and sleep(), for a store without a shorter way: see struct dm_store_ops. */
#ifndef DM_STORE_ASK_H
#define DM_STORE_ASK_H

#include "store/store.h"

/* Sends the question once, as soon as the way is open.  The caller decides whether to ask again without an answer. */
struct dm_answer dm_ask_by_submit(struct dm_store *store, const struct dm_question *question,
                                  const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM]);

#endif
