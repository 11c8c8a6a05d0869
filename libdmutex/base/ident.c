/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/ident.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

static bool read_device(uint64_t *ret_word)
{
    int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    bool is_read = fd >= 0 && read(fd, ret_word, sizeof *ret_word) == (ssize_t)sizeof *ret_word;

    if (fd >= 0)
        close(fd);
    return is_read;
}

/* The last resort, without getrandom(): easy to guess, but different for each process and moment. */
static uint64_t make_word(void)
{
    static bool is_told;

    if (!__atomic_exchange_n(&is_told, true, __ATOMIC_RELAXED))
        dm_log_alarm("there are no random numbers here: getrandom(2) and /dev/urandom are refused, so that others can "
                     "guess which holder this is: allow one of them in the filter of system calls");
    return (uint64_t)dm_clock_boot_ns() * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)getpid();
}

/*
 * 0 is drawn again, because 0 stands for "not drawn yet" in an object's id. getrandom() fails where a seccomp filter
 * forbids it.
 */
void dm_ident_random(uint64_t *ret_words, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        do {
            if (getrandom(&ret_words[i], sizeof ret_words[i], 0) != (ssize_t)sizeof ret_words[i] &&
                !read_device(&ret_words[i]))
                ret_words[i] = make_word();
        } while (ret_words[i] == 0);
    }
}

/*
 * Labels are for people: each space, and each byte that is not printable ASCII, becomes '_'. The result is never empty:
 * a label on the server is three fields separated by spaces, which dmutex_getinfo_np() reads back.
 */
static void copy_word(char *to, size_t room, const char *from)
{
    size_t length = strnlen(from, room - 1);

    for (size_t i = 0; i < length; i++)
        to[i] = isgraph((unsigned char)from[i]) ? from[i] : '_';
    to[length] = '\0';
    if (length == 0)
        snprintf(to, room, "-");
}

void dm_ident_host(const char *given, char ret_host[DM_HOST_ROOM])
{
    char own[DM_HOST_ROOM] = "";

    if (!*given && gethostname(own, sizeof own - 1) == 0)
        given = own;
    copy_word(ret_host, DM_HOST_ROOM, given);
}

void dm_ident_program(char ret_program[DM_PROGRAM_ROOM])
{
    copy_word(ret_program, DM_PROGRAM_ROOM, program_invocation_short_name);
}

void dm_ident_draw(struct dm_ident *ret_ident, const char *host)
{
    uint64_t bits[2];
    char word[DM_HOST_ROOM], program[DM_PROGRAM_ROOM];

    dm_ident_random(bits, 2);
    snprintf(ret_ident->uuid, sizeof ret_ident->uuid, "%016" PRIx64 "%016" PRIx64, bits[0], bits[1]);
    dm_ident_host(host, word);
    dm_ident_program(program);
    snprintf(ret_ident->label, sizeof ret_ident->label, "%d %s %s", (int)getpid(), word, program);
}
