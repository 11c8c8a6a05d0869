/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/address.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>

struct entry {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_un path;
    } at;
    socklen_t length;
    bool is_tried;
};

struct dm_addresses {
    char *host, *port; /* copies; NULL for a path */
    unsigned count;
    bool has_good; /* entries[0] */
    struct entry entries[DM_ADDRESSES_MOST];
};

/* ---- look-up ----------------------------------------------------------------------------- */

static bool is_loopback(const struct addrinfo *found)
{
    if (found->ai_family == AF_INET)
        return ntohl(((struct sockaddr_in *)(void *)found->ai_addr)->sin_addr.s_addr) >> IN_CLASSA_NSHIFT ==
               IN_LOOPBACKNET;
    return IN6_IS_ADDR_LOOPBACK(&((struct sockaddr_in6 *)(void *)found->ai_addr)->sin6_addr);
}

/* RFC 6761: this is this machine's name, whatever the name servers say. */
static bool is_localhost(const char *host)
{
    size_t length = strlen(host), tail = strlen("localhost");

    return length >= tail && strcasecmp(host + length - tail, "localhost") == 0 &&
           (length == tail || host[length - tail - 1] == '.');
}

/*
 * AI_ADDRCONFIG leaves out a family of which the machine has no address, because some name servers do not answer
 * questions about it.  But it does not count loopback addresses: on a host with only IPv6, it leaves out 127.0.0.1,
 * even for a name in /etc/hosts, and then the name servers are asked, which may be unreachable.  So names of this
 * machine, and names that are not found with the flag for any reason, are looked up without it.
 */
static int look_up(const struct dm_address *address, bool may_block, struct addrinfo **ret_found)
{
    struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
    int error = EAI_NONAME;

    hints.ai_flags = may_block ? AI_ADDRCONFIG : AI_NUMERICHOST;
    if (!may_block || !is_localhost(address->host))
        error = getaddrinfo(address->host, address->port, &hints, ret_found);
    if (!may_block || (error == 0 && !is_loopback(*ret_found)))
        return error;
    if (error == 0)
        freeaddrinfo(*ret_found);
    hints.ai_flags = 0;
    return getaddrinfo(address->host, address->port, &hints, ret_found);
}

/* The next one from `from` on that is of this family, or of another. */
static const struct addrinfo *find_family(const struct addrinfo *from, int family, bool is_wanted)
{
    while (from && (from->ai_family == family) != is_wanted)
        from = from->ai_next;
    return from;
}

static void add(struct dm_addresses *addresses, const struct addrinfo *found)
{
    struct entry *entry = &addresses->entries[addresses->count];

    if (addresses->count == DM_ADDRESSES_MOST || found->ai_addrlen > sizeof entry->at)
        return;
    memcpy(&entry->at, found->ai_addr, found->ai_addrlen);
    entry->length = found->ai_addrlen;
    addresses->count++;
}

/* The families alternate, so that not all addresses of a broken one are tried first. */
static void add_all(struct dm_addresses *addresses, const struct addrinfo *found)
{
    int family = found->ai_family;
    const struct addrinfo *same = found, *other = find_family(found, family, false);

    while (same || other) {
        if (same) {
            add(addresses, same);
            same = find_family(same->ai_next, family, true);
        }
        if (other) {
            add(addresses, other);
            other = find_family(other->ai_next, family, false);
        }
    }
}

/* EAI_NONAME and its kind are a name server's answer; all other failures say nothing about the name. */
static enum dm_found kind_of(int error)
{
    switch (error) {
    case EAI_AGAIN:
    case EAI_FAIL:
    case EAI_SYSTEM:
    case EAI_MEMORY:
        return DM_FOUND_AWAY;
    default:
        return DM_FOUND_NOTHING;
    }
}

/* For the same reason as dm_text_error(). */
static const char *text_of(int error)
{
    switch (error) {
    case EAI_NONAME:
        return "Name or service not known";
    case EAI_NODATA:
    case EAI_ADDRFAMILY:
        return "The name has no address of a kind that can be used here";
    case EAI_AGAIN:
        return "Temporary failure in name resolution";
    case EAI_MEMORY:
        return "Out of memory";
    case EAI_SYSTEM:
        return dm_text_error(errno);
    default:
        return "Failure in name resolution";
    }
}

static enum dm_found find_tcp(struct dm_addresses *addresses, const struct dm_address *address, bool may_block,
                              char *ret_reason)
{
    struct addrinfo *found = NULL;
    int error;

    addresses->host = strdup(address->host);
    addresses->port = strdup(address->port);
    error = addresses->host && addresses->port ? look_up(address, may_block, &found) : EAI_MEMORY;
    if (error == 0) {
        add_all(addresses, found);
        freeaddrinfo(found);
        return DM_FOUND;
    }
    if (!may_block && error == EAI_NONAME)
        return DM_FOUND_LATER;
    snprintf(ret_reason, DM_REASON_ROOM, "the host name %.80s cannot be looked up: %s", address->host, text_of(error));
    return kind_of(error);
}

/* The path fits: its length was checked when the URL was parsed. calloc() has put the NUL after it. */
static enum dm_found find_path(struct dm_addresses *addresses, const char *path)
{
    struct entry *entry = &addresses->entries[0];

    entry->at.path.sun_family = AF_UNIX;
    strncpy(entry->at.path.sun_path, path, sizeof entry->at.path.sun_path - 1);
    entry->length = sizeof entry->at.path;
    addresses->count = 1;
    return DM_FOUND;
}

enum dm_found dm_addresses_find(const struct dm_address *address, bool may_block, struct dm_addresses **ret_addresses,
                                char ret_reason[DM_REASON_ROOM])
{
    struct dm_addresses *addresses = calloc(1, sizeof *addresses);
    enum dm_found found;

    if (!addresses) {
        snprintf(ret_reason, DM_REASON_ROOM, "out of memory");
        return DM_FOUND_NOTHING;
    }
    found = address->host ? find_tcp(addresses, address, may_block, ret_reason) : find_path(addresses, address->path);
    if (found == DM_FOUND)
        *ret_addresses = addresses;
    else
        dm_addresses_free(addresses);
    return found;
}

/* NULL is allowed, as for free(). */
void dm_addresses_free(struct dm_addresses *addresses)
{
    if (!addresses)
        return;
    free(addresses->host);
    free(addresses->port);
    free(addresses);
}

bool dm_addresses_are_of(const struct dm_addresses *addresses, const struct dm_address *address)
{
    if (!addresses)
        return false;
    if (!address->host)
        return !addresses->host && strcmp(addresses->entries[0].at.path.sun_path, address->path) == 0;
    return addresses->host && strcmp(addresses->host, address->host) == 0 &&
           strcmp(addresses->port, address->port) == 0;
}

/* ---- rounds ------------------------------------------------------------------------------ */

unsigned dm_addresses_left(const struct dm_addresses *addresses)
{
    unsigned left = 0;

    for (unsigned i = 0; addresses && i < addresses->count; i++)
        left += !addresses->entries[i].is_tried;
    return left;
}

unsigned dm_addresses_take(struct dm_addresses *addresses)
{
    unsigned i = 0;

    while (i < addresses->count - 1 && addresses->entries[i].is_tried)
        i++;
    addresses->entries[i].is_tried = true;
    return i;
}

const struct sockaddr *dm_addresses_at(const struct dm_addresses *addresses, unsigned index, socklen_t *ret_length)
{
    *ret_length = addresses->entries[index].length;
    return &addresses->entries[index].at.any;
}

void dm_addresses_put_back(struct dm_addresses *addresses, unsigned index)
{
    addresses->entries[index].is_tried = false;
}

static void put_first(struct dm_addresses *addresses, unsigned index)
{
    struct entry good = addresses->entries[index];

    memmove(&addresses->entries[1], &addresses->entries[0], index * sizeof good);
    addresses->entries[0] = good;
    addresses->has_good = true;
}

void dm_addresses_note_good(struct dm_addresses *addresses, unsigned index)
{
    put_first(addresses, index);
    for (unsigned i = 0; i < addresses->count; i++)
        addresses->entries[i].is_tried = true;
}

bool dm_addresses_have_good(const struct dm_addresses *addresses)
{
    return addresses && addresses->has_good;
}

void dm_addresses_prefer(struct dm_addresses *addresses, const struct dm_addresses *before)
{
    const struct entry *good = &before->entries[0];

    for (unsigned i = 0; before->has_good && i < addresses->count; i++) {
        const struct entry *entry = &addresses->entries[i];

        if (entry->length == good->length && memcmp(&entry->at, &good->at, good->length) == 0) {
            put_first(addresses, i);
            break;
        }
    }
}

void dm_addresses_begin(struct dm_addresses *addresses)
{
    for (unsigned i = 0; i < addresses->count; i++)
        addresses->entries[i].is_tried = false;
}
