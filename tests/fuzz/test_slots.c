/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Maps and redirects of the nodes of a Cluster: no slot comes through twice, each address has a host and a port, and
 * nothing of a refused map comes through.  The first byte of an input chooses the reader.
 */
#include <stdbool.h>
#include <string.h>

#include "fuzz.h"
#include "link/reader.h"
#include "stores/redis/wire/slots.h"

#define ASKED "asked.example"
#define ID "$40\r\n0123456789012345678901234567890123456789\r\n"
#define SERVER "*4\r\n$9\r\n127.0.0.1\r\n:7001\r\n" ID "*0\r\n"

static const char *const seeds[] = {
    "a*2\r\n*3\r\n:0\r\n:5460\r\n" SERVER "*4\r\n:5461\r\n:16383\r\n" SERVER SERVER,
    "a*1\r\n*3\r\n:0\r\n:0\r\n*4\r\n$1\r\n?\r\n:7001\r\n" ID "*2\r\n$2\r\nip\r\n$3\r\n::1\r\n",
    "a*1\r\n*3\r\n:7\r\n:9\r\n*2\r\n$-1\r\n:65535\r\n",
    "a*0\r\n",
    "bMOVED 3999 127.0.0.1:6381",
    "bASK 16383 ::1:6379",
    "bMOVED 0 :6379",
    "bASK 1 [fe80::1]:6379",
    "cdmutex:{group}:lock:leaf",
    "c{}{a}",
    NULL,
};

static const char *const words[] = {
    "\r\n",
    "*0\r\n",
    "*1\r\n",
    "*2\r\n",
    "*3\r\n",
    "*4\r\n",
    "*-1\r\n",
    "*3\r\n:1\r\n:2\r\n" SERVER,
    "*3\r\n:16383\r\n:16383\r\n" SERVER,
    SERVER,
    ID,
    "$-1\r\n",
    "$0\r\n\r\n",
    "$1\r\n?\r\n",
    "$2\r\nip\r\n",
    ":0\r\n",
    ":-1\r\n",
    ":16384\r\n",
    ":65535\r\n",
    ":9223372036854775807\r\n",
    "-ERR\r\n",
    "MOVED ",
    "ASK ",
    ":",
    "::1",
    "[",
    "]",
    " ",
    "?",
    "16384",
    "4294967296",
    "{",
    "}",
    NULL,
};

const struct fuzzer fuzzer = { "slots", seeds, words, 60000, 5000000 };

static bool is_taken[DM_SLOTS];

static void must_be_address(const char *host, const char *port)
{
    char *end;
    unsigned long number = strtoul(port, &end, 10);

    must(*host && strlen(host) < 256 && !strpbrk(host, " \r\n\t"));
    must(number >= 1 && number <= 65535 && !*end && strlen(port) <= 5);
}

static void take(void *user, unsigned first, unsigned last, const char *host, const char *port)
{
    int *calls = user;

    (*calls)++;
    must(first <= last && last < DM_SLOTS);
    for (unsigned slot = first; slot <= last; slot++) {
        must(!is_taken[slot]);
        is_taken[slot] = true;
    }
    must_be_address(host, port);
}

static void read_map(const uint8_t *bytes, size_t length)
{
    struct dm_reader reader;
    redisReply *reply = NULL;
    int calls = 0;

    memset(is_taken, 0, sizeof is_taken);
    must(dm_reader_begin(&reader));
    dm_reader_expect(&reader, &dm_slots_summary);
    must(dm_reader_feed(&reader, (const char *)bytes, length));
    if (dm_reader_next(&reader, &reply) && reply) {
        bool is_good = dm_slots_read(reply, ASKED, take, &calls);

        must(!calls || is_good);
        dm_reply_free(reply);
    }
    dm_reader_end(&reader);
}

static void read_redirect(const char *text)
{
    struct dm_redirect redirect;

    if (!dm_redirect_read(text, ASKED, &redirect))
        return;
    must(strncmp(text, redirect.is_ask ? "ASK " : "MOVED ", redirect.is_ask ? 4 : 6) == 0);
    must(redirect.slot < DM_SLOTS);
    must_be_address(redirect.host, redirect.port);
}

/* A text without braces has the same slot by itself and in braces. */
static void find_slot(const char *text, size_t length)
{
    char key[FUZZ_INPUT_MAX + 10];
    unsigned slot = dm_slot_of(text, length);

    must(slot < DM_SLOTS);
    if (length == 0 || strpbrk(text, "{}"))
        return;
    snprintf(key, sizeof key, "a}:{%s}{b}", text);
    must(dm_slot_of(key, strlen(key)) == slot);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    const char *text;

    if (length < 1)
        return 0;
    text = fuzz_text(bytes + 1, length - 1);
    if (bytes[0] % 4 == 1)
        read_map(bytes + 1, length - 1);
    else if (bytes[0] % 4 == 2)
        read_redirect(text);
    else
        find_slot(text, strlen(text));
    return 0;
}
