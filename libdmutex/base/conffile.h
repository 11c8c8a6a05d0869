/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The configuration files, dmutex.conf(5): /etc/dmutex/dmutex.conf and $XDG_CONFIG_HOME/dmutex/dmutex.conf
 * (without that variable: $HOME/.config).  The user's file is read last; its keys take the place of the other's.
 *
 * A file is used if it belongs to root or to the user, nobody else can write it, and nobody else can put
 * another in its place (base/place.h).  A file that is there and cannot be used is a failure, never ignored.
 */
#ifndef DM_BASE_CONFFILE_H
#define DM_BASE_CONFFILE_H

#include <stdbool.h>
#include <stdint.h>

#define DM_CONFFILE_SYSTEM "/etc/dmutex/dmutex.conf"
#define DM_CONFFILE_PATH_ROOM 512
#define DM_CONFFILE_URL_ROOM 1024
#define DM_CONFFILE_REASON_ROOM 400

struct dm_conffile {
    char url[DM_CONFFILE_URL_ROOM];             /* with the password file in it; "": none */
    char url_from[DM_CONFFILE_PATH_ROOM];       /* the file that names it */
    uint32_t lease_ms;                          /* 0: not said */
    bool forbids_local;                         /* Local=forbid */
    char forbidden_by[DM_CONFFILE_PATH_ROOM];   /* the file that says so */
};

/*
 * Reads one file over what *file has.  A file that is absent is no failure.
 * False: ret_reason has the sentence, and *file is not to be used.
 */
bool dm_conffile_read(const char *path, struct dm_conffile *file, char ret_reason[DM_CONFFILE_REASON_ROOM]);

/*
 * Writes the path of the user's file.  False: the user has none, because no variable says where, or because the
 * program is a set-user-ID one and must not believe them.
 */
bool dm_conffile_user_path(char ret_path[DM_CONFFILE_PATH_ROOM]);

/* Reads both files.  False: ret_reason. */
bool dm_conffile_read_all(struct dm_conffile *ret_file, char ret_reason[DM_CONFFILE_REASON_ROOM]);

#endif
