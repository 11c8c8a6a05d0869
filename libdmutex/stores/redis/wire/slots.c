/* SPDX-License-Identifier: BSD-2-Clause */
#include "stores/redis/wire/slots.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stores/redis/wire/reply.h"

#define PORT_MAX 65535

/* ---- the slot of a key ------------------------------------------------------------------- */

/* CRC16/XMODEM: the polynomial is 0x1021, the initial value 0. */
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

/* Braces without a text between them are no tag, even if other braces follow. */
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
 * A CRC with the initial value 0 is linear: flipping a bit of the text always flips the same bits of the slot.  The
 * letters 'h'..'w' differ in four bits, as the numbers 0..15 do, so a tag of four letters is a number of 16 bits.
 * tag_of_bit[i] is the number whose bits flip only bit i of the slot, and tag_of_0 the tag of slot 0.
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

/* ---- the map ----------------------------------------------------------------------------- */

/* The authors of Redis Cluster recommend at most 1000 nodes. */
#define HOSTS_MOST 1024
#define HOST_ROOM 256

/* The initial values mark what never came: no range of slots begins after its end, and no master has port 0. */
struct range {
    uint16_t first, last, port;
    uint16_t host; /* the number of a host, counted from 1; 0: the host of the server that sends the map */
};

/* Only what has come is written, so a small map uses few pages. */
struct slots_map {
    struct dm_summary summary;
    bool is_nonsense;
    unsigned ranges, hosts;
    bool has_no_name, is_ip_next, has_ip; /* of the last range's master */
    struct range range[DM_SLOTS];
    char host[HOSTS_MOST][HOST_ROOM];
};

static struct dm_summary *begin_map(void)
{
    struct slots_map *map = malloc(sizeof *map);

    if (!map)
        return NULL;
    map->summary = (struct dm_summary){ .reply.type = DM_REPLY_SUMMARY };
    map->is_nonsense = false;
    map->ranges = map->hosts = 0;
    return &map->summary;
}

/* NULL: there are too many. */
static struct range *add_range(struct slots_map *map)
{
    struct range *range = map->ranges < DM_SLOTS ? &map->range[map->ranges++] : NULL;

    if (range)
        *range = (struct range){ .first = 1 };
    map->has_no_name = map->is_ip_next = map->has_ip = false;
    return range;
}

static bool is_text(const struct dm_element *element, const char *text)
{
    return element->type == REDIS_REPLY_STRING && element->length == strlen(text) &&
           memcmp(element->text, text, element->length) == 0;
}

static bool read_number(const struct dm_element *element, unsigned most, uint16_t *ret_number)
{
    if (element->type != REDIS_REPLY_INTEGER || element->number < 0 || element->number > most)
        return false;
    *ret_number = (uint16_t)element->number;
    return true;
}

/* A master with several ranges appears in each of them, but its host is kept once. */
static bool find_host(struct slots_map *map, const struct dm_element *element, uint16_t *ret_host)
{
    unsigned at = 0;

    while (at < map->hosts &&
           (strncmp(map->host[at], element->text, element->length) != 0 || map->host[at][element->length]))
        at++;
    if (at == HOSTS_MOST)
        return false;
    if (at == map->hosts) {
        memcpy(map->host[at], element->text, element->length);
        map->host[at][element->length] = '\0';
        map->hosts++;
    }
    *ret_host = (uint16_t)(at + 1);
    return true;
}

/* A server that does not know its own address, or has several for clients, gives no host. */
static bool read_host(struct slots_map *map, const struct dm_element *element, uint16_t *ret_host)
{
    if (element->type == REDIS_REPLY_NIL || is_text(element, ""))
        return true;
    return element->type == REDIS_REPLY_STRING && dm_reply_is_host(element->text, element->length) &&
           find_host(map, element, ret_host);
}

/* Host, port, id, and pairs of words.  A server that should announce a host name but has none writes "?". */
static bool take_of_master(struct slots_map *map, int index, const struct dm_element *element)
{
    struct range *range = &map->range[map->ranges - 1];

    if (index == 0) {
        map->has_no_name = is_text(element, "?");
        return map->has_no_name || read_host(map, element, &range->host);
    }
    return index != 1 || read_number(element, PORT_MAX, &range->port);
}

/* The address of a server without a name is in one of the pairs, after the word "ip". */
static bool take_of_pairs(struct slots_map *map, int index, const struct dm_element *element)
{
    if (!map->has_no_name || map->has_ip)
        return true;
    if (index % 2 == 0) {
        map->is_ip_next = is_text(element, "ip");
        return true;
    }
    map->has_ip = map->is_ip_next;
    return !map->is_ip_next || read_host(map, element, &map->range[map->ranges - 1].host);
}

/* First, last, the master, and the replicas, which are ignored. */
static bool take_of_range(struct slots_map *map, int index, const struct dm_element *element)
{
    struct range *range = &map->range[map->ranges - 1];

    if (index == 0)
        return read_number(element, DM_SLOTS - 1, &range->first);
    if (index == 1)
        return read_number(element, DM_SLOTS - 1, &range->last);
    return index != 2 || element->type == REDIS_REPLY_ARRAY;
}

/* The take() of a dm_summary_kind.  Elements come in the order of the bytes: an array before what is in it. */
static void take_element(struct dm_summary *summary, const redisReadTask *task, const struct dm_element *element)
{
    struct slots_map *map = (struct slots_map *)summary;
    int path[4]; /* of the element: its index, its parent's, and so on */
    int levels = 0;
    bool is_good = true;

    for (const redisReadTask *at = task; at->parent; at = at->parent) {
        if (levels == 4)
            return;
        path[levels++] = at->idx;
    }
    if (levels == 1)
        is_good = element->type == REDIS_REPLY_ARRAY && add_range(map);
    else if (levels == 2)
        is_good = take_of_range(map, path[0], element);
    else if (levels == 3 && path[1] == 2)
        is_good = take_of_master(map, path[0], element);
    else if (levels == 4 && path[2] == 2 && path[1] == 3)
        is_good = take_of_pairs(map, path[0], element);
    map->is_nonsense |= !is_good;
}

const struct dm_summary_kind dm_slots_summary = { begin_map, take_element };

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

static bool is_sound(const struct slots_map *map, unsigned char *taken)
{
    for (unsigned i = 0; i < map->ranges; i++) {
        const struct range *range = &map->range[i];

        if (range->first > range->last || range->port == 0 || !take_slots(taken, range))
            return false;
    }
    return !map->is_nonsense;
}

/* Calls `take` only for a good map. */
bool dm_slots_read(const redisReply *reply, const char *asked_host, dm_slots_fn take, void *user)
{
    const struct slots_map *map = (const struct slots_map *)reply;
    unsigned char *taken = calloc(DM_SLOTS / CHAR_BIT, 1);
    bool is_good = taken && reply->type == DM_REPLY_SUMMARY && is_sound(map, taken);
    char port[sizeof "65535"];

    free(taken);
    for (unsigned i = 0; is_good && i < map->ranges; i++) {
        const struct range *range = &map->range[i];

        snprintf(port, sizeof port, "%hu", range->port);
        take(user, range->first, range->last, range->host ? map->host[range->host - 1] : asked_host, port);
    }
    return is_good;
}

/* ---- redirects --------------------------------------------------------------------------- */

/* Reads digits that are followed by `mark`, at which *ret_end then points. */
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

/* host:port.  The last colon precedes the port, because an IPv6 address has colons and usually no brackets. */
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
