/* SPDX-License-Identifier: BSD-2-Clause */
#include "config/conffile.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/attrs.h"
#include "base/file.h"
#include "base/place.h"
#include "base/text.h"

#define LARGEST 65536 /* bytes; a larger file is not a configuration */

enum section { SECTION_NONE, SECTION_SERVER, SECTION_DEFAULTS };

/*
 * The state of reading one file.  `password_file` points into the file's text, so join() runs before read_open() frees
 * it.
 */
struct reader {
    const char *path;
    struct dm_conffile *file;
    char *reason;
    unsigned line;
    enum section section;
    unsigned seen; /* bits: the keys seen so far */
    const char *password_file;
    bool has_url;
};

/*
 * Writes the sentence and returns false.  The first fault ends the parsing, so this is called once.  The path is cut at
 * 200 bytes, so `used` is always below the room.
 */
static bool complain(const struct reader *reader, const char *format, ...) DM_PRINTF(2, 3);
static bool complain(const struct reader *reader, const char *format, ...)
{
    char place[16] = "";
    va_list args;
    int used;

    if (reader->line)
        snprintf(place, sizeof place, ":%u", reader->line);
    used = snprintf(reader->reason, DM_CONFFILE_REASON_ROOM, "%.200s%s: ", reader->path, place);
    va_start(args, format);
    vsnprintf(reader->reason + used, DM_CONFFILE_REASON_ROOM - (size_t)used, format, args);
    va_end(args);
    return false;
}

/* ---- values ------------------------------------------------------------------------------ */

/* Refuses a long value and never truncates it: a truncated URL could name another server. */
static bool copy(const struct reader *reader, char *to, size_t room, const char *value)
{
    if (strlen(value) >= room)
        return complain(reader, "this value is longer than %zu bytes", room - 1);
    strcpy(to, value);
    return true;
}

/*
 * Replaces an earlier file's URL together with the password file that join() has added to it: the system's password
 * must never go to a server that the user's file names.
 */
static bool read_url(struct reader *reader, char *value)
{
    if (!*value)
        return complain(reader, "Url is empty: write redis://HOST or unix:///PATH");
    reader->has_url = true;
    return copy(reader, reader->file->url, sizeof reader->file->url, value) &&
           copy(reader, reader->file->url_from, sizeof reader->file->url_from, reader->path);
}

static bool read_password_file(struct reader *reader, char *value)
{
    if (*value != '/')
        return complain(reader, "PasswordFile \"%.100s\" is not an absolute path", value);
    reader->password_file = value;
    return true;
}

static bool read_local(struct reader *reader, char *value)
{
    reader->file->forbids_local = strcmp(value, "forbid") == 0;
    if (!reader->file->forbids_local && strcmp(value, "allow") != 0)
        return complain(reader, "Local \"%.100s\" is neither forbid nor allow", value);
    return copy(reader, reader->file->forbidden_by, sizeof reader->file->forbidden_by, reader->path);
}

/*
 * The first byte must be a digit, because strtoul() accepts blanks and a sign.  The number is checked before the
 * multiplication, so that it cannot overflow.
 */
bool dm_conffile_time(const char *value, uint32_t least_ms, uint32_t most_ms, uint32_t *ret_ms)
{
    static const struct {
        const char *unit;
        unsigned long ms;
    } units[] = { { "", 1 }, { "ms", 1 }, { "s", 1000 }, { "min", 60000 } };
    unsigned long number;
    char *end;

    errno = 0;
    number = strtoul(value, &end, 10);
    for (size_t i = 0; i < DM_COUNT(units); i++) {
        if (errno || *value < '0' || *value > '9' || strcmp(end, units[i].unit) != 0 ||
            number > most_ms / units[i].ms || number * units[i].ms < least_ms)
            continue;
        *ret_ms = (uint32_t)(number * units[i].ms);
        return true;
    }
    return false;
}

static bool read_lease(struct reader *reader, char *value)
{
    return dm_conffile_time(value, 100, 3600000, &reader->file->lease_ms) ||
           complain(reader,
                    "Lease \"%.100s\" is not a time from 100 ms to 1 hour: 10s, 500ms, 2min, or bare milliseconds",
                    value);
}

static bool read_linger(struct reader *reader, char *value)
{
    return dm_conffile_time(value, 0, UINT32_MAX - 1, &reader->file->linger_ms) ||
           complain(reader, "Linger \"%.100s\" is not a time: 1s, 500ms, 2min, or bare milliseconds", value);
}

bool dm_conffile_on_down(const char *value, bool *ret_fails)
{
    bool fails = strcmp(value, "fail") == 0;

    if (!fails && strcmp(value, "wait") != 0)
        return false;
    *ret_fails = fails;
    return true;
}

static bool read_on_down(struct reader *reader, char *value)
{
    return dm_conffile_on_down(value, &reader->file->fails_when_down) ||
           complain(reader, "OnDown \"%.100s\" is neither wait nor fail", value);
}

/* sigabbrev_np() knows the names without SIG; 0 is no signal. */
static int signal_by_name(const char *name)
{
    if (strncmp(name, "SIG", 3) == 0)
        name += 3;
    for (int number = 1; number < NSIG; number++) {
        const char *abbreviation = sigabbrev_np(number);

        if (abbreviation && strcmp(abbreviation, name) == 0)
            return number;
    }
    return 0;
}

bool dm_conffile_on_lost(const char *value, enum dm_on_lost *ret_on_lost, int *ret_signal)
{
    int signal = strncmp(value, "signal:", 7) == 0 ? signal_by_name(value + 7) : 0;

    if (strcmp(value, "log") == 0)
        *ret_on_lost = DM_LOST_LOG;
    else if (strcmp(value, "abort") == 0)
        *ret_on_lost = DM_LOST_ABORT;
    else if (signal)
        *ret_on_lost = DM_LOST_SIGNAL;
    else
        return false;
    *ret_signal = signal;
    return true;
}

static bool read_on_lost(struct reader *reader, char *value)
{
    return dm_conffile_on_lost(value, &reader->file->on_lost, &reader->file->lost_signal) ||
           complain(reader, "OnLost \"%.100s\" is not log, abort or signal:NAME", value);
}

static bool read_host(struct reader *reader, char *value)
{
    if (!*value)
        return complain(reader, "Host is empty: write a name for this host, or leave the key out");
    return copy(reader, reader->file->host, sizeof reader->file->host, value);
}

/* Paths must be absolute: the programs that read this file run in many directories. */
static bool read_log(struct reader *reader, char *value)
{
    static const char *const levels[] = { "warn", "info", "debug" };
    const char *colon = strchrnul(value, ':');

    for (size_t i = 0; i < DM_COUNT(levels); i++) {
        size_t length = strlen(levels[i]);

        if ((size_t)(colon - value) == length && memcmp(value, levels[i], length) == 0 && (!*colon || colon[1] == '/'))
            return copy(reader, reader->file->log, sizeof reader->file->log, value);
    }
    return complain(reader, "Log \"%.100s\" is not warn, info or debug, alone or with :/PATH", value);
}

static bool read_metrics(struct reader *reader, char *value)
{
    if (*value != '/')
        return complain(reader, "Metrics \"%.100s\" is not an absolute path", value);
    return copy(reader, reader->file->metrics, sizeof reader->file->metrics, value);
}

bool dm_conffile_yes_or_no(const char *value, bool *ret_is_yes)
{
    bool is_yes = strcmp(value, "yes") == 0;

    if (!is_yes && strcmp(value, "no") != 0)
        return false;
    *ret_is_yes = is_yes;
    return true;
}

static bool read_metrics_names(struct reader *reader, char *value)
{
    return dm_conffile_yes_or_no(value, &reader->file->has_metrics_names) ||
           complain(reader, "MetricsNames \"%.100s\" is neither yes nor no", value);
}

/* The index of a key is its bit in reader.seen. */
static const struct key {
    const char *name;
    enum section section;
    bool (*read)(struct reader *reader, char *value);
} keys[] = { { "Url", SECTION_SERVER, read_url },
             { "PasswordFile", SECTION_SERVER, read_password_file },
             { "Local", SECTION_SERVER, read_local },
             { "Host", SECTION_DEFAULTS, read_host },
             { "Lease", SECTION_DEFAULTS, read_lease },
             { "Linger", SECTION_DEFAULTS, read_linger },
             { "Log", SECTION_DEFAULTS, read_log },
             { "Metrics", SECTION_DEFAULTS, read_metrics },
             { "MetricsNames", SECTION_DEFAULTS, read_metrics_names },
             { "OnDown", SECTION_DEFAULTS, read_on_down },
             { "OnLost", SECTION_DEFAULTS, read_on_lost } };

/* ---- lines ------------------------------------------------------------------------------- */

/* '\r' counts, so that files with CR LF line ends mean the same. */
static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static char *strip(char *text)
{
    size_t length;

    while (is_blank(*text))
        text++;
    for (length = strlen(text); length && is_blank(text[length - 1]); length--)
        ;
    text[length] = '\0';
    return text;
}

/* Unknown sections and keys are failures: if they were skipped, a misspelt Local=forbid would silently allow. */
static bool read_section(struct reader *reader, const char *line)
{
    if (strcmp(line, "[server]") == 0)
        reader->section = SECTION_SERVER;
    else if (strcmp(line, "[defaults]") == 0)
        reader->section = SECTION_DEFAULTS;
    else
        return complain(reader, "there is no section %.100s: there are [server] and [defaults]", line);
    return true;
}

static bool read_key(struct reader *reader, char *line)
{
    char *value = strchr(line, '=');

    if (!value)
        return complain(reader, "a line is Key=value, [section], or # and a comment");
    *value++ = '\0';
    line = strip(line);
    for (size_t i = 0; i < DM_COUNT(keys); i++) {
        if (strcmp(line, keys[i].name) != 0 || keys[i].section != reader->section)
            continue;
        if (reader->seen & (1u << i))
            return complain(reader, "%s is there twice", line);
        if (strchr(value, '\\'))
            return complain(reader, "the value of %s has a backslash: write %%5C in a Url", line);
        reader->seen |= 1u << i;
        return keys[i].read(reader, strip(value));
    }
    return complain(reader,
                    "there is no key \"%.100s\" here: [server] has Url, PasswordFile and Local; [defaults] has Host, "
                    "Lease, Linger, Log, Metrics, MetricsNames, OnDown and OnLost",
                    line);
}

static bool read_line(struct reader *reader, char *line)
{
    line = strip(line);
    if (!*line || *line == '#')
        return true;
    return *line == '[' ? read_section(reader, line) : read_key(reader, line);
}

/*
 * Adds the password file to the URL, as an option.  All bytes but RFC 3986's unreserved ones and '/' are
 * percent-encoded, so that the path cannot add another option.  If the first snprintf() runs out of room, the check at
 * the path's first byte finds out: an absolute path has at least one.
 */
static bool join(struct reader *reader)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
    char *url = reader->file->url;
    size_t length = strlen(url);

    reader->line = 0;
    if (!reader->password_file)
        return true;
    if (!reader->has_url)
        return complain(reader, "PasswordFile without Url: name the server that the password is for");
    length +=
        (size_t)snprintf(url + length, DM_CONFFILE_URL_ROOM - length, "%cpassword_file=", strchr(url, '?') ? '&' : '?');
    for (const char *c = reader->password_file; *c; c++) {
        if (length + 4 > DM_CONFFILE_URL_ROOM)
            return complain(reader, "Url and PasswordFile are too long");
        length += (size_t)snprintf(url + length, DM_CONFFILE_URL_ROOM - length, strchr(plain, *c) ? "%c" : "%%%02X",
                                   (unsigned char)*c);
    }
    return true;
}

static bool read_text(struct reader *reader, char *text)
{
    for (char *line; (line = strsep(&text, "\n"));) {
        reader->line++;
        if (!read_line(reader, line))
            return false;
    }
    return join(reader);
}

/* ---- files ------------------------------------------------------------------------------- */

/* Checks the file itself, by its descriptor; the folders on the way have been checked (base/place.h). */
static bool check_status(struct reader *reader, const struct stat *status)
{
    if (!S_ISREG(status->st_mode))
        return complain(reader, "is not a file of at most %d bytes", LARGEST);
    if (!dm_place_is_trusted(status->st_uid))
        return complain(reader, "belongs to user %u: give it to root or to the user of this program",
                        (unsigned)status->st_uid);
    if (status->st_mode & 022)
        return complain(reader, "can be written by others than its owner: chmod go-w");
    return true;
}

/*
 * A NUL byte within the text is refused: string functions would see only the part before it, and keys after it would be
 * silently lost.
 */
static bool read_open(struct reader *reader, int fd)
{
    struct stat status;
    size_t length;
    char *text;
    bool is_good;

    if (fstat(fd, &status) != 0)
        return complain(reader, "%s", dm_text_error(errno));
    if (!check_status(reader, &status))
        return false;
    text = dm_file_read_open(fd, LARGEST, &length);
    if (!text && errno == EFBIG)
        return complain(reader, "is not a file of at most %d bytes", LARGEST);
    if (!text)
        return complain(reader, "%s", dm_text_error(errno));
    is_good = strlen(text) == length ? read_text(reader, text) : complain(reader, "is not text");
    free(text);
    return is_good;
}

static bool complain_of_way(struct reader *reader, const struct dm_fault *fault)
{
    if (fault->kind == DM_FAULT_OWNER)
        return complain(reader, "is not used: %s %s %u", fault->place, fault->words, (unsigned)fault->owner);
    return complain(reader, "%s", dm_text_error(fault->error));
}

/* A dangling link is not an absent file: somebody has configured this host, and a disk or a volume is missing. */
static bool complain_of_link(struct reader *reader, const struct dm_fault *fault)
{
    if (fault->error != ENOENT)
        return complain_of_way(reader, fault);
    return complain(reader, "a link leads to %.120s, which is not there: put it there, or remove the link",
                    fault->place);
}

/*
 * A symbolic link is followed step by step, with the same checks as for folders.  Kubernetes' volumes need this: the
 * name links to ..data/NAME, and ..data to a folder.  The file at the end is opened through the descriptor that the
 * walk returns.
 */
static int open_link(const char *path, struct dm_fault *ret_fault)
{
    char name[40];
    int place = dm_place_open(path, ret_fault), fd;

    if (place < 0)
        return -1;
    snprintf(name, sizeof name, "/proc/thread-self/fd/%d", place);
    fd = open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        *ret_fault = (struct dm_fault){ .kind = DM_FAULT_ERROR, .error = errno };
    close(place);
    return fd;
}

/* Reads the file in its folder, following a link.  True also if there is none. */
static bool read_leaf(struct reader *reader, int folder, const char *leaf)
{
    struct dm_fault fault = { .kind = DM_FAULT_ERROR };
    int fd = openat(folder, leaf, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool is_good;

    if (fd < 0 && errno == ENOENT)
        return true;
    if (fd < 0 && errno == ELOOP) {
        fd = open_link(reader->path, &fault);
        if (fd < 0)
            return complain_of_link(reader, &fault);
    }
    if (fd < 0) {
        fault.error = errno;
        return complain_of_way(reader, &fault);
    }
    is_good = read_open(reader, fd);
    close(fd);
    return is_good;
}

/* True if the last folder of the path is a link. */
static bool is_behind_link(const char *path, const char *leaf)
{
    char folder[DM_CONFFILE_PATH_ROOM];
    struct stat status;

    snprintf(folder, sizeof folder, "%.*s", (int)(leaf - 1 - path), path);
    return lstat(folder, &status) == 0 && S_ISLNK(status.st_mode);
}

/* O_NONBLOCK, because open() of a FIFO would wait for a writer; check_status() then refuses the FIFO. */
bool dm_conffile_read(const char *path, struct dm_conffile *file, char ret_reason[DM_CONFFILE_REASON_ROOM])
{
    struct reader reader = { .path = path, .file = file, .reason = ret_reason };
    struct dm_fault fault;
    const char *leaf;
    bool is_good;
    int folder = dm_place_open_parent(path, &leaf, &fault);

    if (folder < 0 && fault.error == ENOENT && is_behind_link(path, leaf))
        return complain_of_link(&reader, &fault);
    if (folder < 0 && (fault.kind == DM_FAULT_ABSENT || fault.error == ENOENT || fault.error == ENOTDIR))
        return true;
    if (folder < 0)
        return complain_of_way(&reader, &fault);
    is_good = read_leaf(&reader, folder, leaf);
    close(folder);
    return is_good;
}

/* A relative path in XDG_CONFIG_HOME is ignored, as the XDG Base Directory Specification says. */
bool dm_conffile_user_path(char ret_path[DM_CONFFILE_PATH_ROOM])
{
    const char *config = secure_getenv("XDG_CONFIG_HOME"), *home = secure_getenv("HOME");
    int length;

    if (config && *config == '/')
        length = snprintf(ret_path, DM_CONFFILE_PATH_ROOM, "%s/dmutex/dmutex.conf", config);
    else if (home && *home == '/')
        length = snprintf(ret_path, DM_CONFFILE_PATH_ROOM, "%s/.config/dmutex/dmutex.conf", home);
    else
        return false;
    return length > 0 && length < DM_CONFFILE_PATH_ROOM;
}

bool dm_conffile_read_all(struct dm_conffile *ret_file, char ret_reason[DM_CONFFILE_REASON_ROOM])
{
    char path[DM_CONFFILE_PATH_ROOM];

    memset(ret_file, 0, sizeof *ret_file);
    if (!dm_conffile_read(DM_CONFFILE_SYSTEM, ret_file, ret_reason))
        return false;
    if (!dm_conffile_user_path(path))
        return true;
    if (!dm_place_is_out_of_reach(path))
        return dm_conffile_read(path, ret_file, ret_reason);
    strcpy(ret_file->passed_over, path);
    return true;
}
