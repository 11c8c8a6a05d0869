/* SPDX-License-Identifier: BSD-2-Clause */
#include "folder.h"

#include <stdio.h>

#include "keeper.h"

char folder[32];

const char *in_folder(const char *name)
{
    static char room[4][600];
    static unsigned last;
    char *path = room[last++ % 4];

    snprintf(path, sizeof room[0], "%s/%s", folder, name);
    return path;
}

int folder_teardown(void **state)
{
    (void)state;
    keeper_remove_folder(folder);
    return 0;
}
