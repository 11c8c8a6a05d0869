/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The configuration files, dmutex.conf(5): /etc/dmutex/dmutex.conf and $XDG_CONFIG_HOME/dmutex/dmutex.conf (without
 * XDG_CONFIG_HOME: $HOME/.config).  The user's file is read last, and its keys win.
 *
 * A file is used if root or the user owns it, and nobody else can write or replace it (base/place.h).  A file that
 * exists but cannot be used is a failure; it is never ignored.  The exception is a user's file in a folder that this
 * user may not enter, as when a daemon has dropped root's rights and still has root's HOME: that file is another
 * user's, and is passed over.
 */
#ifndef DM_CONFIG_CONFFILE_H
#define DM_CONFIG_CONFFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/ident.h"

#define DM_CONFFILE_SYSTEM "/etc/dmutex/dmutex.conf"
#define DM_CONFFILE_PATH_ROOM 512
#define DM_CONFFILE_URL_ROOM 1024
#define DM_CONFFILE_REASON_ROOM 400

/* What a lost hold does to the process, in addition to the callback's work. */
enum dm_on_lost { DM_LOST_LOG, DM_LOST_ABORT, DM_LOST_SIGNAL };

struct dm_conffile {
    char url[DM_CONFFILE_URL_ROOM];       /* includes the password file; "": none */
    char url_from[DM_CONFFILE_PATH_ROOM]; /* path of the file with the URL */
    uint32_t lease_ms;                    /* 0: not said */
    uint32_t linger_ms;
    bool fails_when_down; /* OnDown=fail */
    enum dm_on_lost on_lost;
    int lost_signal;                          /* DM_LOST_SIGNAL: this signal */
    char host[DM_HOST_ROOM];                  /* "": not said */
    char log[DM_CONFFILE_PATH_ROOM];          /* level[:path]; "": not said */
    bool has_metrics_names;                   /* MetricsNames=yes */
    char metrics[DM_CONFFILE_PATH_ROOM];      /* path, with %p for the process id; "": not said */
    bool forbids_local;                       /* Local=forbid */
    char forbidden_by[DM_CONFFILE_PATH_ROOM]; /* path of the file with Local=forbid */
    char passed_over[DM_CONFFILE_PATH_ROOM];  /* path of the user's file that is out of reach; "": none */
};

/*
 * Values that are written alike in the files and in the environment.  Each returns false, and changes nothing, if the
 * value is not valid.  A time is 10s, 500ms, 2min, or plain milliseconds.
 */
bool dm_conffile_on_lost(const char *value, enum dm_on_lost *ret_on_lost, int *ret_signal);
bool dm_conffile_yes_or_no(const char *value, bool *ret_is_yes);
bool dm_conffile_on_down(const char *value, bool *ret_fails);
bool dm_conffile_time(const char *value, uint32_t least_ms, uint32_t most_ms, uint32_t *ret_ms);

/*
 * Reads one file over the values in *file.  An absent file is no failure.  Returns false with the sentence in
 * ret_reason; *file must not be used then.
 */
bool dm_conffile_read(const char *path, struct dm_conffile *file, char ret_reason[DM_CONFFILE_REASON_ROOM]);

/*
 * Writes the path of the user's file.  False: there is none, because neither variable is set, or because the program is
 * set-user-ID and must not trust variables.
 */
bool dm_conffile_user_path(char ret_path[DM_CONFFILE_PATH_ROOM]);

/* Reads both files.  False with the sentence in ret_reason. */
bool dm_conffile_read_all(struct dm_conffile *ret_file, char ret_reason[DM_CONFFILE_REASON_ROOM]);

#endif
