/* SPDX-License-Identifier: BSD-2-Clause */
#include "place.h"

#include <stdlib.h>
#include <string.h>

/*
 * A lock file need not exist yet, so we resolve the longest part that exists. Each round of the loop cuts off one more
 * part.
 */
char *place_resolve(const char *path)
{
    g_autofree char *whole = g_strdup(path);
    char *resolved = NULL;

    for (char *end = whole + strlen(whole); end && end > whole; end = strrchr(whole, '/')) {
        *end = '\0';
        resolved = realpath(*whole ? whole : "/", NULL);
        if (resolved) {
            char *joined = g_strconcat(resolved[1] ? resolved : "", path + (end - whole), NULL);

            free(resolved);
            return joined;
        }
    }
    return NULL;
}

/* A wildcard may stand for a link, so from there on nothing can be resolved before a file is locked. */
char *place_resolve_glob(const char *glob)
{
    size_t plain = strcspn(glob, "*?");
    g_autofree char *directory = NULL, *resolved = NULL;

    if (!glob[plain])
        return place_resolve(glob);
    while (plain > 0 && glob[plain - 1] != '/')
        plain--;
    if (plain < 2)
        return NULL;
    directory = g_strndup(glob, plain - 1);
    resolved = place_resolve(directory);
    return resolved ? g_strconcat(resolved, glob + plain - 1, NULL) : NULL;
}
