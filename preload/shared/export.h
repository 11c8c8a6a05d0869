/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DM_PRELOAD_EXPORT_H
#define DM_PRELOAD_EXPORT_H

/* Exports a name that libc has too. */
#define EXPORT __attribute__((visibility("default")))

#endif
