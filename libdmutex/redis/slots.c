/* SPDX-License-Identifier: BSD-2-Clause */
#include "redis/slots.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/reply.h"

#define PORT_MAX 65535

/* ---- the slot of a key ------------------------------------------------------------------- */

/* CRC16/XMODEM: the polynomial is 0x1021, and the register begins with 0. */
static unsigned crc16(const char *text, size_t length)
{
    unsigned crc = 0;

    for (size_t i = 0; i < length; i++) {
        crc ^= (unsigned)(unsigned char)text[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1) & 0xFFFF;
    }
    return crc;
}

/* Braces without a text between them are no tag, also if other braces stand behind. */
unsigned dm_slot_of(const char *key, size_t length)
{
    const char *open = memchr(key, '{', length);
    const char *close = open ? memchr(open, '}', length - (size_t)(open - key)) : NULL;

    if (close && close > open + 1) {
        key = open + 1;
        length = (size_t)(close - key);
    }
    return crc16(key, length) % DM_SLOTS;
}

/*
 * A CRC that begins with 0 is linear: a bit of the text, flipped, always flips the same bits of the slot.  The letters
 * 'h'..'w' differ in four bits each, as the numbers 0..15 do; so a tag of four letters is a number of 16 bits.
 * tag_of_bit[i] is the number whose bits flip bit i of the slot alone, and tag_of_0 the tag of slot 0.
 */
void dm_slot_tag(unsigned slot, char ret_tag[DM_SLOT_TAG_ROOM])
{
    static const uint16_t tag_of_0 = 0x8413; /* "plik" */
    static const uint16_t tag_of_bit[] = { 0x8536, 0x0F55, 0x9ABE, 0x8658, 0x0898, 0x1BC9, 0x8917,
                                           0x9ABA, 0x1104, 0x9FCD, 0x8426, 0x0D75, 0x9EFE, 0x8640 };
    unsigned tag = tag_of_0;

    for (size_t i = 0; i < sizeof tag_of_bit / sizeof tag_of_bit[0]; i++)
        tag ^= slot >> i & 1 ? tag_of_bit[i] : 0;
    for (int i = 0; i < 4; i++)
        ret_tag[i] = (char)('h' + (tag >> (12 - 4 * i) & 15));
    ret_tag[4] = '\0';
}

/* ---- addresses --------------------------------------------------------------------------- */

static bool is_text(const redisReply *reply, const char *text)
{
    return reply->type == REDIS_REPLY_STRING && reply->len == strlen(text) && memcmp(reply->str, text, reply->len) == 0;
}

/*
 * The address of a server that is to tell its name, and has no name: in pairs of words behind host, port and id.  NULL:
 * no address.  A reply that is no list has no elements.
 */
static const redisReply *find_ip(const redisReply *server)
{
    const redisReply *pairs = server->elements > 3 ? server->element[3] : NULL;

    for (size_t i = 0; pairs && i + 1 < pairs->elements; i += 2) {
        if (is_text(pairs->element[i], "ip"))
            return pairs->element[i + 1];
    }
    return NULL;
}

/* A server that does not know its own address, or has several for clients, tells no host. */
static bool read_host(const redisReply *server, const char *asked_host, const char **ret_host)
{
    const redisReply *host = server->element[0];

    if (is_text(host, "?"))
        host = find_ip(server);
    if (!host || host->type == REDIS_REPLY_NIL || is_text(host, "")) {
        *ret_host = asked_host;
        return true;
    }
    *ret_host = host->str;
    return host->type == REDIS_REPLY_STRING && dm_reply_is_host(host->str, host->len);
}

static bool read_number(const redisReply *reply, unsigned most, unsigned *ret_number)
{
    if (reply->type != REDIS_REPLY_INTEGER || reply->integer < 0 || reply->integer > most)
        return false;
    *ret_number = (unsigned)reply->integer;
    return true;
}

/* ---- the map ----------------------------------------------------------------------------- */

struct range {
    unsigned first, last, port;
    const char *host; /* in the reply, or asked_host */
};

/* first, last, the master, and the replicas, which are not looked at. */
static bool read_range(const redisReply *reply, const char *asked_host, struct range *ret_range)
{
    const redisReply *master = reply->type == REDIS_REPLY_ARRAY && reply->elements > 2 ? reply->element[2] : NULL;

    return master && read_number(reply->element[0], DM_SLOTS - 1, &ret_range->first) &&
           read_number(reply->element[1], DM_SLOTS - 1, &ret_range->last) && ret_range->first <= ret_range->last &&
           master->type == REDIS_REPLY_ARRAY && master->elements > 1 &&
           read_number(master->element[1], PORT_MAX, &ret_range->port) && ret_range->port > 0 &&
           read_host(master, asked_host, &ret_range->host);
}

/* False if a slot is in two ranges.  `taken` has a bit for each slot. */
static bool take_slots(unsigned char *taken, const struct range *range)
{
    for (unsigned slot = range->first; slot <= range->last; slot++) {
        unsigned char bit = (unsigned char)(1u << slot % CHAR_BIT);

        if (taken[slot / CHAR_BIT] & bit)
            return false;
        taken[slot / CHAR_BIT] |= bit;
    }
    return true;
}

static bool is_map(const redisReply *reply, const char *asked_host, unsigned char *taken)
{
    struct range range;

    if (reply->type != REDIS_REPLY_ARRAY)
        return false;
    for (size_t i = 0; i < reply->elements; i++) {
        if (!read_range(reply->element[i], asked_host, &range) || !take_slots(taken, &range))
            return false;
    }
    return true;
}

/* Reads all twice, so that `take` is called for good maps alone. */
bool dm_slots_read(const redisReply *reply, const char *asked_host, dm_slots_fn take, void *user)
{
    unsigned char *taken = calloc(DM_SLOTS / CHAR_BIT, 1);
    bool is_good = taken && is_map(reply, asked_host, taken);
    struct range range;
    char port[sizeof "65535"];

    free(taken);
    for (size_t i = 0; is_good && i < reply->elements; i++) {
        read_range(reply->element[i], asked_host, &range);
        snprintf(port, sizeof port, "%hu", (unsigned short)range.port);
        take(user, range.first, range.last, range.host, port);
    }
    return is_good;
}

/* ---- redirects --------------------------------------------------------------------------- */

/* Digits, and behind them `mark`, at which *ret_end points. */
static bool read_digits(const char *text, char mark, uint64_t least, uint64_t most, const char **ret_end,
                        unsigned *ret_number)
{
    const char *end = text + strspn(text, "0123456789");
    uint64_t number;

    if (*end != mark || !dm_reply_digits(text, (size_t)(end - text), &number) || number < least || number > most)
        return false;
    *ret_end = end;
    *ret_number = (unsigned)number;
    return true;
}

/* host:port: the last colon begins the port, because an IPv6 address has colons, and usually no brackets. */
static bool read_address(const char *address, const char *asked_host, struct dm_redirect *ret_redirect)
{
    const char *colon = strrchr(address, ':'), *end;
    size_t length = colon ? (size_t)(colon - address) : 0;
    unsigned port;

    if (!colon || !read_digits(colon + 1, '\0', 1, PORT_MAX, &end, &port))
        return false;
    if (length == 0) {
        address = asked_host;
        length = strlen(asked_host);
    } else if (length > 2 && address[0] == '[' && address[length - 1] == ']') {
        address++;
        length -= 2;
    }
    if (!dm_reply_is_host(address, length) || (length == 1 && address[0] == '?'))
        return false;
    memcpy(ret_redirect->host, address, length);
    ret_redirect->host[length] = '\0';
    snprintf(ret_redirect->port, sizeof ret_redirect->port, "%u", port);
    return true;
}

bool dm_redirect_read(const char *error, const char *asked_host, struct dm_redirect *ret_redirect)
{
    struct dm_redirect redirect = { .is_ask = strncmp(error, "ASK ", 4) == 0 };
    const char *slot = error + (redirect.is_ask ? 4 : 6), *end;

    if (!redirect.is_ask && strncmp(error, "MOVED ", 6) != 0)
        return false;
    if (!read_digits(slot, ' ', 0, DM_SLOTS - 1, &end, &redirect.slot) || !read_address(end + 1, asked_host, &redirect))
        return false;
    *ret_redirect = redirect;
    return true;
}
