/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TEST_PRELOAD_FOLDER_H
#define TEST_PRELOAD_FOLDER_H

/* The folder of a group of tests, with its programs and configurations; made and removed by the group's fixtures. */
extern char folder[64];

#endif
