/* SPDX-License-Identifier: BSD-2-Clause */
#include "lines.h"

#include <stdio.h>
#include <string.h>

int lines_with(const char *path, const char *text)
{
    char line[1024];
    FILE *file = fopen(path, "r");
    int count = 0;

    while (file && fgets(line, sizeof line, file))
        count += strstr(line, text) != NULL;
    if (file)
        fclose(file);
    return count;
}
