/* SPDX-License-Identifier: BSD-2-Clause */
#include "config_files.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/place.h"
#include "refuse.h"

#define LARGEST (4 << 20) /* bytes; anything larger is no configuration */

/* ---- which ------------------------------------------------------------------------------- */

/*
 * True even if the file cannot be examined, or is a dangling link: then reading it refuses it; otherwise its rules
 * would silently be lost.
 */
static bool is_there(const char *path)
{
    return faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

/*
 * A file in a home that this user may not enter is another user's: setpriv(1), start-stop-daemon(8) and others change
 * the user but leave HOME as it was. dmutex.conf is passed over in the same case.
 */
static bool has_user_file(const char *path)
{
    if (!dm_place_is_out_of_reach(path))
        return is_there(path);
    say_warning("%s is not read: you may not enter a folder on its path; set HOME to your own", path);
    return false;
}

/*
 * A named file must exist, because the user has asked for it. Its path becomes absolute, because a dmutex-run inside
 * the command may run in another folder.
 */
static bool add_named(GPtrArray *paths, const char *path, const char *who, GError **error)
{
    if (!is_there(path))
        return refuse(error, REFUSE_CONFIG, "%s: %s; it was named by %s", path, g_strerror(errno), who);
    g_ptr_array_add(paths, g_canonicalize_filename(path, NULL));
    return true;
}

static int compare(gconstpointer one, gconstpointer other)
{
    return strcmp(*(char *const *)one, *(char *const *)other);
}

/*
 * Adds the files of the directory, sorted by name as in every shell. Only *.conf, because editors and dpkg leave other
 * files there. A missing directory is no fault; one that cannot be read is, because its rules would silently be lost.
 */
static bool add_directory(GPtrArray *paths, const char *path, GError **error)
{
    g_autoptr(GPtrArray) found = g_ptr_array_new();
    g_autoptr(GError) reason = NULL;
    GDir *directory = g_dir_open(path, 0, &reason);
    const char *name;

    if (!directory)
        return !is_there(path) || refuse(error, REFUSE_CONFIG, "%s", reason->message);
    while ((name = g_dir_read_name(directory)))
        if (name[0] != '.' && g_str_has_suffix(name, ".conf"))
            g_ptr_array_add(found, g_build_filename(path, name, NULL));
    g_dir_close(directory);
    g_ptr_array_sort(found, compare);
    g_ptr_array_extend_and_steal(paths, g_steal_pointer(&found));
    return true;
}

/* NULL if this user has no such place, as a user without HOME whom the system does not know; GLib would complain. */
static char *find_user_file(void)
{
    if (!g_getenv("XDG_CONFIG_HOME") && !g_getenv("HOME") && !getpwuid(getuid()))
        return NULL;
    return g_build_filename(g_get_user_config_dir(), "dmutex", "preload.conf", NULL);
}

/* Only the first place with a file counts, and places are not merged: a user's file replaces the system's rules. */
bool config_files_find(const char *option, const char *system_file, GPtrArray **ret_paths, GError **error)
{
    g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *user_file = find_user_file();
    g_autofree char *system_directory = g_strconcat(system_file, ".d", NULL);
    const char *environment = g_getenv("DMUTEX_CONF");

    if (option) {
        if (!add_named(paths, option, "--config", error))
            return false;
    } else if (environment && *environment) {
        if (!add_named(paths, environment, "DMUTEX_CONF", error))
            return false;
    } else if (user_file && has_user_file(user_file)) {
        g_ptr_array_add(paths, g_steal_pointer(&user_file));
    } else {
        if (is_there(system_file))
            g_ptr_array_add(paths, g_strdup(system_file));
        if (!add_directory(paths, system_directory, error))
            return false;
    }
    *ret_paths = g_steal_pointer(&paths);
    return true;
}

/* ---- safe -------------------------------------------------------------------------------- */

/*
 * Whoever writes the rules decides whether a program's locks hold, and which server it asks. So only this user and root
 * may have written them. check_way() finds out whether root's number means root, in a user namespace.
 */
static bool check_owner(const char *path, const struct stat *status, GError **error)
{
    if (!dm_place_is_trusted(status->st_uid))
        return refuse(error, REFUSE_CONFIG,
                      "%s: belongs to user %u, who is neither root nor you: copy it, or have it given to one of them",
                      path, (unsigned)status->st_uid);
    if (status->st_mode & 022)
        return refuse(error, REFUSE_CONFIG, "%s: can be written by others than its owner: chmod go-w %s", path, path);
    return true;
}

/*
 * A user who can write to a directory above the file, or to a link on the way, can put another file in its place. So
 * each directory and link is checked, and must lead to the file that is open: it was opened first, and device and inode
 * reveal an exchange in between.
 */
static bool check_way(const char *path, const struct stat *status, GError **error)
{
    struct dm_fault fault;
    struct stat found = { .st_ino = 0 };
    int fd = dm_place_open(path, &fault);

    if (fd < 0 && fault.kind == DM_FAULT_OWNER)
        return refuse(error, REFUSE_CONFIG, "%s: others could put another file in its place, because %s %s %u", path,
                      fault.place, fault.words, (unsigned)fault.owner);
    if (fd < 0)
        return refuse(error, REFUSE_CONFIG, "%s: %s: %s", path, fault.place, g_strerror(fault.error));
    fstat(fd, &found);
    close(fd);
    return (found.st_dev == status->st_dev && found.st_ino == status->st_ino) ||
           refuse(error, REFUSE_CONFIG, "%s: was exchanged while it was read: try again", path);
}

/* GKeyFile requires UTF-8. */
static char *read_text(int fd, const char *path, GError **error)
{
    size_t length;
    g_autofree char *text = dm_file_read_open(fd, LARGEST, &length);

    if (!text) {
        if (errno == EFBIG)
            refuse(error, REFUSE_CONFIG, "%s: is not a file of at most 4 MiB", path);
        else
            refuse(error, REFUSE_CONFIG, "%s: %s", path, g_strerror(errno));
        return NULL;
    }
    if (strlen(text) != length || !g_utf8_validate(text, -1, NULL)) {
        refuse(error, REFUSE_CONFIG, "%s: is not a text in UTF-8", path);
        return NULL;
    }
    return g_steal_pointer(&text);
}

static char *load(int fd, const char *path, GError **error)
{
    struct stat status;

    if (fstat(fd, &status) < 0) {
        refuse(error, REFUSE_CONFIG, "%s: %s", path, g_strerror(errno));
        return NULL;
    }
    if (!S_ISREG(status.st_mode)) {
        refuse(error, REFUSE_CONFIG, "%s: is not a file of at most 4 MiB", path);
        return NULL;
    }
    if (!check_owner(path, &status, error) || !check_way(path, &status, error))
        return NULL;
    return read_text(fd, path, error);
}

/* Reports why a file cannot be opened. */
static void refuse_open(const char *path, int reason, GError **error)
{
    g_autofree char *target = reason == ENOENT ? g_file_read_link(path, NULL) : NULL;

    if (target)
        refuse(error, REFUSE_CONFIG, "%s: a link leads to %s, which is not there: put it there, or remove the link",
               path, target);
    else
        refuse(error, REFUSE_CONFIG, "%s: %s", path, g_strerror(reason));
}

char *config_files_load(const char *path, GError **error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not block */
    char *text;

    if (fd < 0) {
        refuse_open(path, errno, error);
        return NULL;
    }
    text = load(fd, path, error);
    close(fd);
    return text;
}
