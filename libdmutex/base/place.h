/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Folders and sockets that no other user can have put in the place of ours.
 *
 * A folder is trusted if only root, this user and the owner of "/" can change the folders on the way there.
 * (The owner of "/" is root or, in a user namespace, the number that stands for root.)
 * Sticky folders as /tmp may be written by all: each entry there is checked by its owner.  Folders on a read-only
 * mount, as the volumes of a pod, may have any mode.
 *
 * A file that is written needs less: the folder may be another user's, as that of a log or of metrics often is, if no
 * link of another user leads there, so that nobody has root write elsewhere.
 *
 * All functions are async-signal-safe: no malloc, no stdio, no lock.  The preload module is built with this
 * file, too.
 */
#ifndef DM_BASE_PLACE_H
#define DM_BASE_PLACE_H

#include <stdbool.h>
#include <sys/types.h>

enum dm_fault_kind {
    DM_FAULT_ABSENT, /* there is no such folder or nobody listens there: it may be made */
    DM_FAULT_ERROR,  /* a system call failed: error */
    DM_FAULT_OWNER   /* another user could act there, or does: words, then owner */
};

#define DM_FAULT_ROOM 160

/* The reason to refuse a place, for a sentence: "PLACE WORDS OWNER", or "PLACE: ERROR". */
struct dm_fault {
    enum dm_fault_kind kind;
    int error;         /* ABSENT and ERROR: an errno value */
    const char *words; /* OWNER: what is said between the place and the owner's number */
    uid_t owner;
    bool is_open;              /* OWNER: the place is a folder that all may change, and not sticky */
    char place[DM_FAULT_ROOM]; /* cut if it is longer */
};

/* True for root, this user, and the owner of "/". */
bool dm_place_is_trusted(uid_t owner);

/* True if the file or folder is on a read-only mount, so that its mode does not matter. */
bool dm_place_is_read_only(int fd);

/*
 * Opens the folder of an absolute path's last part, by O_PATH.  Checks each folder and symbolic link on the way
 * by its descriptor, so no other folder can come in between.  *ret_leaf points to the last part, in `path`.
 * Returns a descriptor that the caller closes, or -1 with the fault.
 */
int dm_place_open_parent(const char *path, const char **ret_leaf, struct dm_fault *ret_fault);

/*
 * The same for a file that is written, as the beginning of this file says.  The last part is the caller's to check: no
 * link, and no file of another user.
 */
int dm_place_open_parent_of_output(const char *path, const char **ret_leaf, struct dm_fault *ret_fault);

/* Opens the path's last part in the way of dm_place_open_parent(): a folder or a file.  Follows a link. */
int dm_place_open(const char *path, struct dm_fault *ret_fault);

/*
 * Opens a folder of this user's own in the same way: no link, owned by the effective user, mode 0700 or less.
 * may_make: makes the folder if there is none.
 */
int dm_place_open_own(const char *path, bool may_make, struct dm_fault *ret_fault);

/* Removes an empty folder, if the last part of the path is its name still.  The descriptor stays open. */
bool dm_place_remove(int folder, const char *path);

struct sockaddr_un;

/* The address of a socket of that name in the folder, through the descriptor.  False: the name is too long. */
bool dm_place_address(int folder, const char *name, struct sockaddr_un *ret_address);

/*
 * Connects to the socket of that name in a folder of dm_place_open_own(), through the descriptor, so that no
 * path is looked up again.  The effective user must listen there.  `type`: as of socket(); with
 * SOCK_NONBLOCK a full queue is DM_FAULT_ERROR with EAGAIN.  Needs /proc.
 * Returns a socket that is closed on exec, or -1 with the fault.
 */
int dm_place_connect(int folder, const char *name, int type, struct dm_fault *ret_fault);

/* True if this user may not enter a folder on the way to the path. */
bool dm_place_is_out_of_reach(const char *path);

#endif
