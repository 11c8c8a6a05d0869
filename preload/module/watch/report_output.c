/* SPDX-License-Identifier: BSD-2-Clause */
#include "report_output.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/place.h"
#include "base/shield.h"
#include "module/base/settings.h"
#include "shared/text.h"

/* ---- lines ------------------------------------------------------------------------------- */

/* %p is the process's number, so that children do not overwrite the file. */
static void expand(struct text *path, const char *pattern)
{
    for (; *pattern; pattern++) {
        if (pattern[0] == '%' && pattern[1] == 'p') {
            text_add_number(path, (uint64_t)getpid());
            pattern++;
        } else {
            text_add_bytes(path, pattern, 1);
        }
    }
}

static void add_count(struct text *line, const char *name, uint64_t count)
{
    text_add(line, " ");
    text_add(line, name);
    text_add(line, "=");
    text_add_number(line, count);
}

static bool write_line(int fd, const char *name, const struct object_counts *counts)
{
    char bytes[512];
    struct text line = text_in(bytes, sizeof bytes);
    struct dm_shield shield;
    bool is_written;

    text_add(&line, name);
    add_count(&line, "locks", counts->locks);
    add_count(&line, "waits", counts->waits);
    add_count(&line, "wait_us", counts->wait_ns / 1000);
    add_count(&line, "hold_us", counts->hold_ns / 1000);
    add_count(&line, "losses", counts->losses);
    add_count(&line, "handoffs", counts->handoffs);
    text_add(&line, "\n");
    dm_shield_raise(&shield);
    is_written = write(fd, bytes, line.length) == (ssize_t)line.length;
    dm_shield_lower(&shield);
    return is_written;
}

/* ---- the file ---------------------------------------------------------------------------- */

/*
 * In a folder that strangers can change, a stranger's link could lead anywhere. A relative path is the caller's
 * responsibility.
 */
static int open_in_folder(const char *path, int flags, const char **ret_reason)
{
    struct dm_fault fault;
    const char *leaf;
    int folder, fd;

    if (path[0] != '/')
        return open(path, flags, 0666);
    folder = dm_place_open_parent(path, &leaf, &fault);
    if (folder < 0) {
        *ret_reason = fault.kind == DM_FAULT_OWNER ? "other users can change a folder above it" : NULL;
        errno = fault.error;
        return -1;
    }
    fd = openat(folder, leaf, flags, 0666);
    close(folder);
    return fd;
}

/*
 * Opens a new file, or a file of this user, which is emptied, or a device such as /dev/null. Refuses a link, which may
 * lead to a file that a stranger wants to be overwritten, and a FIFO, which would block.
 */
static int open_report(const char *path, const char **ret_reason)
{
    int fd = open_in_folder(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, ret_reason);
    struct stat status;

    if (fd < 0 && errno == ELOOP)
        *ret_reason = "it is a symbolic link";
    if (fd < 0 || fstat(fd, &status) < 0)
        return fd;
    if (S_ISCHR(status.st_mode))
        return fd;
    if (S_ISREG(status.st_mode) && status.st_uid == geteuid() && status.st_nlink == 1 && ftruncate(fd, 0) == 0)
        return fd;
    *ret_reason = "it is no file of this user alone";
    close(fd);
    return -1;
}

void report_output_add(struct report_output *output, const char *name, const struct object_counts *counts)
{
    struct text path = text_in(output->path, sizeof output->path);
    const char *reason = NULL;

    if (counts->locks == 0 || output->is_broken)
        return;
    if (output->fd < 0) {
        expand(&path, settings_get()->report);
        output->fd = open_report(output->path, &reason);
    }
    if (output->fd >= 0 && write_line(output->fd, name, counts))
        return;
    text_say("the report cannot be written to ", output->path, ": ", reason ? reason : strerrordesc_np(errno), NULL);
    output->is_broken = true;
}

void report_output_end(struct report_output *output)
{
    if (output->fd >= 0)
        close(output->fd);
}
