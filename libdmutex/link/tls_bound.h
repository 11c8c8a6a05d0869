/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether OpenSSL's function names are bound to OpenSSL. */
#ifndef DM_LINK_TLS_BOUND_H
#define DM_LINK_TLS_BOUND_H

#include <stdbool.h>

#include "base/text.h"

/*
 * If the program exports a function named like one of OpenSSL's, the loader prefers the program's.  A program that
 * contains another OpenSSL would then be called by our module, or by half of OpenSSL, and crash.  Returns false with
 * the reason if a call of the loaded module, its libssl or its libcrypto leaves these three although OpenSSL has the
 * function.
 */
bool dm_tls_is_bound_well(void *module, char ret_reason[DM_REASON_ROOM]);

#endif
