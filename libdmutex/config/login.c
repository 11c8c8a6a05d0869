/* SPDX-License-Identifier: BSD-2-Clause */
#include "config/login.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

#define LINE_ROOM 512 /* bytes of a line, with line end and NUL */

void dm_login_wipe(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

void dm_login_clear(struct dm_login *login)
{
    dm_login_wipe(login->user);
    dm_login_wipe(login->password);
    *login = (struct dm_login){ 0 };
}

/* False for an empty line, or a line that does not fit: half a password is useless. */
static bool read_line(FILE *file, char line[LINE_ROOM])
{
    size_t length;

    if (!fgets(line, LINE_ROOM, file))
        return false;
    length = strcspn(line, "\r\n");
    if (length == 0 || (!line[length] && !feof(file)))
        return false;
    line[length] = '\0';
    return true;
}

/*
 * A FIFO must be refused: we would wait for its writer, in the middle of a call.  The copy on the stack is always
 * wiped, and there is no other one, because the stream is unbuffered.
 */
char *dm_login_read_line(const char *path, char ret_reason[DM_REASON_ROOM])
{
    char line[LINE_ROOM], *text = NULL;
    int fd = dm_file_open(path);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;

    if (!file) {
        snprintf(ret_reason, DM_REASON_ROOM, "%s", dm_file_reason(errno));
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    setvbuf(file, NULL, _IONBF, 0);
    if (read_line(file, line))
        text = strdup(line);
    else
        snprintf(ret_reason, DM_REASON_ROOM, "its first line is empty, or longer than 510 bytes");
    explicit_bzero(line, sizeof line);
    fclose(file);
    return text;
}

/* Always makes a new text, so that the caller frees both in the same way. */
static bool take(const char *text, const char *option, const char *path, char **ret_text, char *ret_reason)
{
    char why[DM_REASON_ROOM] = "out of memory";

    *ret_text = path ? dm_login_read_line(path, why) : text ? strdup(text) : NULL;
    if (*ret_text || (!path && !text))
        return true;
    snprintf(ret_reason, DM_REASON_ROOM, "%s \"%.120s\": %.120s", option, path ? path : "", why);
    return false;
}

bool dm_login_read(const struct dm_login *texts, const char *user_file, const char *password_file,
                   struct dm_login *ret_login, char ret_reason[DM_REASON_ROOM])
{
    struct dm_login login = { 0 };

    if (!take(texts->user, "user_file", user_file, &login.user, ret_reason) ||
        !take(texts->password, "password_file", password_file, &login.password, ret_reason)) {
        dm_login_clear(&login);
        return false;
    }
    *ret_login = login;
    return true;
}
