/* SPDX-License-Identifier: BSD-2-Clause */
#include "url_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define LARGEST (4 << 20) /* bytes; dmutex-run refuses a larger file */
#define BLANKS " \t\r"

/* A piece of the file, without surrounding blanks. */
struct piece {
    const char *at;
    size_t length;
};

static struct piece strip(struct piece piece)
{
    while (piece.length > 0 && strchr(BLANKS, piece.at[0]))
        piece = (struct piece){ piece.at + 1, piece.length - 1 };
    while (piece.length > 0 && strchr(BLANKS, piece.at[piece.length - 1]))
        piece.length--;
    return piece;
}

static bool is(struct piece piece, const char *text)
{
    return piece.length == strlen(text) && memcmp(piece.at, text, piece.length) == 0;
}

/*
 * Reads a value as GKeyFile does: \s \n \t \r and \\ stand for one byte. False if it is too long, or has another
 * escape.
 */
static bool copy_value(struct piece value, char ret_url[URL_ROOM])
{
    static const char words[] = "sntr\\", bytes[] = " \n\t\r\\";
    size_t length = 0;

    for (size_t i = 0; i < value.length; i++) {
        const char *word = value.at[i] == '\\' && i + 1 < value.length ? strchr(words, value.at[i + 1]) : NULL;

        if (length == URL_ROOM - 1 || (value.at[i] == '\\' && !word))
            return false;
        ret_url[length++] = word ? bytes[word - words] : value.at[i];
        i += word != NULL;
    }
    ret_url[length] = '\0';
    return length > 0;
}

/* Finds the line's value if its key is Url. */
static bool is_url(struct piece line, struct piece *ret_value)
{
    const char *equals = memchr(line.at, '=', line.length);

    if (!equals || !is(strip((struct piece){ line.at, (size_t)(equals - line.at) }), "Url"))
        return false;
    *ret_value = strip((struct piece){ equals + 1, (size_t)(line.at + line.length - equals - 1) });
    return true;
}

static bool find_value(const char *text, size_t size, struct piece *ret_value)
{
    bool is_server = false;

    for (const char *at = text, *end = text + size; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        struct piece line = strip((struct piece){ at, (size_t)((newline ? newline : end) - at) });

        if (line.length > 0 && line.at[0] == '[')
            is_server = is(line, "[server]");
        else if (is_server && is_url(line, ret_value))
            return true;
        at = newline ? newline + 1 : end;
    }
    return false;
}

/* Returns NULL, or why the file is refused. */
static const char *check(int fd, struct stat *ret_status)
{
    if (fstat(fd, ret_status) < 0)
        return strerrordesc_np(errno);
    if (!S_ISREG(ret_status->st_mode))
        return "it is not a file";
    if (ret_status->st_uid != 0 && ret_status->st_uid != geteuid())
        return "it belongs to another user";
    if (ret_status->st_mode & 022)
        return "others than its owner can write to it";
    return NULL;
}

/* -1 with errno if the file cannot be read. Else how much there is, up to the room. */
static ssize_t read_all(int fd, char *text, size_t room)
{
    size_t length = 0;
    ssize_t got = 1;

    while (length < room && got != 0) {
        got = read(fd, text + length, room - length);
        if (got < 0 && errno != EINTR)
            return -1;
        length += got > 0 ? (size_t)got : 0;
    }
    return (ssize_t)length;
}

/*
 * Reads into its own memory: if somebody truncated a mapped file, the process would get SIGBUS, and some files cannot
 * be mapped. A size of 0 means nothing: files in /proc have it, and those of some user-space file systems.
 */
static const char *read_open(int fd, char *ret_url)
{
    struct stat status;
    const char *reason = check(fd, &status);
    struct piece value;
    ssize_t length;
    size_t room;
    char *text;

    if (reason)
        return reason;
    room = status.st_size > 0 && status.st_size < LARGEST ? (size_t)status.st_size : LARGEST;
    text = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (text == MAP_FAILED)
        return strerrordesc_np(errno);
    length = read_all(fd, text, room);
    if (length < 0)
        reason = strerrordesc_np(errno);
    else if (!find_value(text, (size_t)length, &value))
        reason = "it has no Url in [server]";
    else if (!copy_value(value, ret_url))
        reason = "its Url is empty, too long, or has an escape that means nothing";
    munmap(text, room);
    return reason;
}

bool url_file_read(const char *path, char ret_url[URL_ROOM], const char **ret_reason)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not block */

    if (fd < 0) {
        *ret_reason = strerrordesc_np(errno);
        return false;
    }
    *ret_reason = read_open(fd, ret_url);
    close(fd);
    return *ret_reason == NULL;
}
