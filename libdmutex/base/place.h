/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Folders and sockets that no other user can have substituted for ours.
 *
 * A folder is trusted if only root, this user and the owner of "/" can change the folders on the way there. (The owner
 * of "/" is root or, in a user namespace, the number that stands for root.)  Everyone may write to a sticky folder such
 * as /tmp: there the owner of each entry is checked.  Folders on a read-only mount, such as the volumes of a pod, may
 * have any mode.
 *
 * A file that is only written needs less.  Its folder may be another user's, as that of a log or of metrics often is,
 * as long as no link of another user leads there: nobody can then make root write elsewhere.
 *
 * All functions are async-signal-safe: no malloc, no stdio, no lock.  The preload module is built with this
 * file, too.
 */
#ifndef DM_BASE_PLACE_H
#define DM_BASE_PLACE_H

#include <stdbool.h>
#include <sys/types.h>

enum dm_fault_kind {
    DM_FAULT_ABSENT, /* there is no such folder, or nobody listens there: it may be created */
    DM_FAULT_ERROR,  /* a system call failed: error */
    DM_FAULT_OWNER   /* another user could interfere there, or does: words, then owner */
};

#define DM_FAULT_ROOM 160

/* Why a place is refused; printed as "PLACE WORDS OWNER", or "PLACE: ERROR". */
struct dm_fault {
    enum dm_fault_kind kind;
    int error;         /* ABSENT and ERROR: an errno value */
    const char *words; /* OWNER: the text between the place and the owner's number */
    uid_t owner;
    bool is_open;              /* OWNER: the place is a folder that everyone may change, and not sticky */
    char place[DM_FAULT_ROOM]; /* cut if it is longer */
};

/* True for root, this user, and the owner of "/". */
bool dm_place_is_trusted(uid_t owner);

/* True if the file or folder is on a read-only mount, so that its mode does not matter. */
bool dm_place_is_read_only(int fd);

/*
 * Opens the folder that has the last part of an absolute path, with O_PATH.  Checks each folder and symbolic link on
 * the way by its descriptor, so that nothing can be exchanged after the check. *ret_leaf points to the last part, in
 * `path`.  Returns a descriptor that the caller closes, or -1 with the fault.
 */
int dm_place_open_parent(const char *path, const char **ret_leaf, struct dm_fault *ret_fault);

/*
 * The same for a file that is only written, see above.  The caller must check the last part: it must be no link, and no
 * file of another user.
 */
int dm_place_open_parent_of_output(const char *path, const char **ret_leaf, struct dm_fault *ret_fault);

/* Opens the file or folder itself, with the checks of dm_place_open_parent().  Follows a link. */
int dm_place_open(const char *path, struct dm_fault *ret_fault);

/*
 * Opens a private folder of this user with the same checks: no link, owned by the effective user, mode 0700 or less.
 * may_make: creates the folder if there is none.
 */
int dm_place_open_own(const char *path, bool may_make, struct dm_fault *ret_fault);

/* Removes an empty folder, if the last part of the path is still its name.  The descriptor stays open. */
bool dm_place_remove(int folder, const char *path);

struct sockaddr_un;

/* The address of a socket of that name in the folder, by way of the descriptor.  False: the name is too long. */
bool dm_place_address(int folder, const char *name, struct sockaddr_un *ret_address);

/*
 * Connects to the socket of that name in a folder of dm_place_open_own(), through the descriptor, so that no path is
 * looked up again.  The listener must be the effective user.  `type`: as of socket(); with SOCK_NONBLOCK a full queue
 * is DM_FAULT_ERROR with EAGAIN.  Needs /proc.  Returns a socket that is closed on exec, or -1 with the fault.
 */
int dm_place_connect(int folder, const char *name, int type, struct dm_fault *ret_fault);

/* True if the path has a folder that this user may not enter. */
bool dm_place_is_out_of_reach(const char *path);

#endif
