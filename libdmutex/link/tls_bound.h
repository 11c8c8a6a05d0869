/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether OpenSSL's names mean OpenSSL. */
#ifndef DM_LINK_TLS_BOUND_H
#define DM_LINK_TLS_BOUND_H

#include <stdbool.h>

#include "base/text.h"

/*
 * If the program exports a function with the name of one of OpenSSL's, the loader takes the program's: a program with
 * another OpenSSL inside would be called by our module, or by half of OpenSSL, and crash.  False with the reason if a
 * call of the loaded module, of its libssl or of its libcrypto leads out of these three, though OpenSSL has the
 * function.
 */
bool dm_tls_is_bound_well(void *module, char ret_reason[DM_REASON_ROOM]);

#endif
