/* SPDX-License-Identifier: BSD-2-Clause */
/* A folder for a test, or a group of tests, that the fixtures make and remove. */
#ifndef TEST_FOLDER_H
#define TEST_FOLDER_H

/* Its path: keeper_make_folder(folder, sizeof folder). */
extern char folder[32];

/* FOLDER/NAME; valid until the fourth call after this one. */
const char *in_folder(const char *name);

/* A fixture that removes the folder. */
int folder_teardown(void **state);

#endif
