/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>

#include "config.h"
#include "config/login.h"
#include "config/url_parts.h"

#define DEFAULT_PORT "6379"
#define SENTINEL_PORT "26379"
#define ETCD_PORT "2379"
#define ZOOKEEPER_PORT "2181"
#define ELECTION_TIMEOUT_MS 5000 /* an election takes a second or more */
#define MEMCACHED_PORT "11211"
#define MARIADB_PORT "3306"
#define MARIADB_TIMEOUT_MS 5000 /* a commit may wait for a disk */
#define MARIADB_NAME_MAX 64     /* characters of a name of MariaDB */
#define MARIADB_PREFIX_MAX 54   /* and of a table's, without what the driver appends */
#define DEFAULT_PREFIX "dmutex"
#define DEFAULT_TIMEOUT_MS 2000
#define SENTINEL_SWITCH_MS 5000
/*
 * At least the default command_timeout: a master that was stalled, and continues after the election of its replica,
 * executes all requests in its sockets, to which a client sends for command_timeout.  The time of the election need not
 * be added: a master that is cut off stops by itself before its replica can be elected.
 */
#define CLUSTER_SWITCH_MS DEFAULT_TIMEOUT_MS
#define DB_MAX 999999
#define HOST_MOST 255 /* bytes; DNS names are shorter, and structures have no more room */

/*
 * An optional user[:password]@ at the beginning.  The last '@' ends the login and the first ':' the user, so a password
 * may contain both unencoded.  A '/' or '?' in it must be encoded, because the URL is split there first.
 */
static bool read_login(struct dm_url *url, struct dm_part *from, char *ret_reason)
{
    const char *at = memrchr(from->text, '@', from->length);
    struct dm_part login, user;
    bool has_password;

    if (!at)
        return true;
    login = (struct dm_part){ from->text, (size_t)(at - from->text) };
    from->length -= login.length + 1;
    from->text = at + 1;
    user = dm_part_cut(&login, ':', &has_password);
    if (user.length && !dm_part_set(&url->user, user))
        return dm_url_complain(ret_reason, "the user name cannot be decoded");
    if (has_password && !dm_part_set(&url->password, login))
        return dm_url_complain(ret_reason, "the password cannot be decoded");
    return true;
}

/* Quotes only a number of up to five digits: other text may be the password of a login without its @. */
static bool complain_of_port(char *ret_reason, struct dm_part port)
{
    unsigned number;

    if (port.length > 5 || !dm_part_number(port, 0, 99999, &number))
        return dm_url_complain(ret_reason, "the port is not in 1..65535 (a user and password end with an @)");
    snprintf(ret_reason, DM_REASON_ROOM, "the port is not in 1..65535: \"%u\"", number);
    return false;
}

/*
 * host[:port].  An IPv6 address must be in brackets, or its first colon would begin the port.  The port stays a text,
 * because getaddrinfo() takes one.
 */
static bool read_address(struct dm_part address, const char *default_port, char **host_slot, char **port_slot,
                         char *ret_reason)
{
    struct dm_part host = address, port = dm_part_rest(default_port);
    bool found;
    unsigned number;

    if (address.length && address.text[0] == '[') {
        host = (struct dm_part){ address.text + 1, address.length - 1 };
        address = host;
        host = dm_part_cut(&address, ']', &found);
        if (!found || (address.length && address.text[0] != ':'))
            return dm_url_complain(ret_reason, "an IPv6 address is written [address]:port");
        if (address.length)
            port = (struct dm_part){ address.text + 1, address.length - 1 };
    } else {
        host = dm_part_cut(&address, ':', &found);
        if (found)
            port = address;
    }
    if (host.length == 0)
        return dm_url_complain(ret_reason, "the host is missing");
    if (!dm_part_number(port, 1, 65535, &number))
        return complain_of_port(ret_reason, port);
    if (!dm_part_set(host_slot, host) || !dm_part_set(port_slot, port))
        return dm_url_complain(ret_reason, "the host cannot be decoded");
    return strlen(*host_slot) <= HOST_MOST || dm_url_complain(ret_reason, "the host is longer than 255 bytes");
}

/* Takes /db off the end.  Without a number after the slash, or without a slash, the database is 0. */
static bool cut_db(struct dm_url *url, struct dm_part *where, char *ret_reason)
{
    bool has_db;
    struct dm_part db = *where;

    *where = dm_part_cut(&db, '/', &has_db);
    return !db.length || dm_part_number(db, 0, DB_MAX, &url->db) ||
           dm_url_complain(ret_reason, "the database is not a number in 0..999999");
}

/* [login@]host[:port][/db] */
static bool read_tcp(struct dm_url *url, struct dm_part address, char *ret_reason)
{
    url->kind = DM_URL_TCP;
    return cut_db(url, &address, ret_reason) && read_login(url, &address, ret_reason) &&
           read_address(address, DEFAULT_PORT, &url->host, &url->port, ret_reason);
}

/*
 * [login@]host[:port],host[:port]…  The login is for the servers with the data.  A server must not be listed twice: a
 * sentinel would count twice, and a single server could be a majority.
 */
static bool read_list(struct dm_url *url, struct dm_part list, const char *default_port, char *ret_reason)
{
    bool has_more = true;

    if (!read_login(url, &list, ret_reason))
        return false;
    while (has_more) {
        struct dm_part address = dm_part_cut(&list, ',', &has_more);
        struct dm_url_host *host = &url->hosts[url->host_count];

        if (url->host_count == DM_URL_HOSTS_MOST)
            return dm_url_complain(ret_reason, "the list has more than 15 servers");
        url->host_count++;
        if (!read_address(address, default_port, &host->host, &host->port, ret_reason))
            return false;
        for (struct dm_url_host *other = url->hosts; other < host; other++) {
            if (strcmp(other->host, host->host) == 0 && strcmp(other->port, host->port) == 0)
                return dm_url_complain(ret_reason, "the list has a server twice");
        }
    }
    return true;
}

/* [login@]host[:port],…/master-name[/db] */
static bool read_sentinel(struct dm_url *url, struct dm_part where, char *ret_reason)
{
    bool has_name, has_db;
    struct dm_part db = where;
    struct dm_part hosts = dm_part_cut(&db, '/', &has_name);
    struct dm_part name = dm_part_cut(&db, '/', &has_db);

    url->kind = DM_URL_SENTINEL;
    url->switch_ms = SENTINEL_SWITCH_MS;
    if (name.length == 0)
        return dm_url_complain(ret_reason, DM_URL_SENTINEL_FORM);
    if (db.length && !dm_part_number(db, 0, DB_MAX, &url->db))
        return dm_url_complain(ret_reason, "the database is not a number in 0..999999");
    if (!dm_part_set(&url->master, name) || url->master[strcspn(url->master, " \t\r\n")])
        return dm_url_complain(ret_reason, "the master's name cannot be decoded");
    return read_list(url, hosts, SENTINEL_PORT, ret_reason);
}

/* [login@]host[:port],…  A slash at the end is accepted, since other URLs have a path there. */
static bool read_cluster(struct dm_url *url, struct dm_part where, char *ret_reason)
{
    bool has_path;
    struct dm_part path = where;
    struct dm_part hosts = dm_part_cut(&path, '/', &has_path);

    url->kind = DM_URL_CLUSTER;
    url->switch_ms = CLUSTER_SWITCH_MS;
    if (path.length)
        return dm_url_complain(ret_reason,
                               "locks of a Cluster are in database 0: remove the number; " DM_URL_CLUSTER_FORM);
    return read_list(url, hosts, DEFAULT_PORT, ret_reason);
}

/*
 * [login@]host[:port],…[/db].  Three, five or seven servers: an even number would tolerate no more failures than one
 * server less.
 */
static bool read_quorum(struct dm_url *url, struct dm_part hosts, char *ret_reason)
{
    url->kind = DM_URL_QUORUM;
    if (!cut_db(url, &hosts, ret_reason) || !read_list(url, hosts, DEFAULT_PORT, ret_reason))
        return false;
    return url->host_count == 3 || url->host_count == 5 || url->host_count == 7 ||
           dm_url_complain(ret_reason, "a quorum has 3, 5 or 7 servers: " DM_URL_QUORUM_FORM);
}

/* [login@]host[:port],…[/prefix] */
static bool read_members(struct dm_url *url, struct dm_part where, const char *port, char *ret_reason)
{
    bool has_prefix;
    struct dm_part prefix = where;
    struct dm_part hosts = dm_part_cut(&prefix, '/', &has_prefix);

    url->command_timeout_ms = ELECTION_TIMEOUT_MS;
    if (prefix.length && !dm_url_set_prefix(url, prefix))
        return dm_url_complain(ret_reason, "the path is a prefix of 1..64 letters, digits, \".\", \"_\" and \"-\"");
    return read_list(url, hosts, port, ret_reason);
}

static bool read_etcd(struct dm_url *url, struct dm_part where, char *ret_reason)
{
    url->kind = DM_URL_ETCD;
    return read_members(url, where, ETCD_PORT, ret_reason);
}

static bool read_etcds(struct dm_url *url, struct dm_part where, char *ret_reason)
{
    url->has_tls = true;
    return read_etcd(url, where, ret_reason);
}

static bool read_zookeeper(struct dm_url *url, struct dm_part where, char *ret_reason)
{
    url->kind = DM_URL_ZOOKEEPER;
    return read_members(url, where, ZOOKEEPER_PORT, ret_reason);
}

static bool read_zookeepers(struct dm_url *url, struct dm_part where, char *ret_reason)
{
    url->has_tls = true;
    return read_zookeeper(url, where, ret_reason);
}

/*
 * host[:port] or /path.  One server: clients with a list spread their keys over it, and move them when a server is
 * missing for one of them, so two could hold a lock.
 */
static bool read_memcached(struct dm_url *url, struct dm_part where, char *ret_reason)
{
    url->kind = DM_URL_MEMCACHED;
    if (memchr(where.text, '@', where.length))
        return dm_url_complain(ret_reason, "memcached:// has no login: take it away");
    if (where.length && where.text[0] == '/')
        return (dm_part_set(&url->path, where) && strlen(url->path) < sizeof((struct sockaddr_un *)0)->sun_path) ||
               dm_url_complain(ret_reason, "the path cannot be decoded, or is longer than 107 bytes");
    if (memchr(where.text, ',', where.length))
        return dm_url_complain(ret_reason,
                               "locks are on one server of memcached: if a list of them changed, or one were "
                               "cut off, a lock could have two owners");
    if (memchr(where.text, '/', where.length))
        return dm_url_complain(ret_reason,
                               "nothing comes after the host of memcached:// but options, such as ?prefix=");
    return read_address(where, MEMCACHED_PORT, &url->host, &url->port, ret_reason);
}

/*
 * [login@]host[:port],…/database, or [login@]/database with the option socket.
 */
static bool read_mariadb(struct dm_url *url, struct dm_part where, char *ret_reason)
{
    struct dm_part database = where, hosts = dm_part_cut(&database, '/', &(bool){ false });

    url->kind = DM_URL_MARIADB;
    url->command_timeout_ms = MARIADB_TIMEOUT_MS;
    if (database.length == 0 || !dm_part_set(&url->database, database) || strlen(url->database) > MARIADB_NAME_MAX)
        return dm_url_complain(ret_reason, "the database is missing, or its name is too long: " DM_URL_MARIADB_FORM);
    if (hosts.length && hosts.text[hosts.length - 1] != '@')
        return read_list(url, hosts, MARIADB_PORT, ret_reason);
    return read_login(url, &hosts, ret_reason);
}

/* Called after all options are parsed, which may come in any order. */
static bool check_mariadb(const struct dm_url *url, char *ret_reason)
{
    if (url->kind != DM_URL_MARIADB)
        return true;
    if (!url->host_count == !url->path)
        return dm_url_complain(ret_reason,
                               "it has hosts, or the option socket with a path, and not both: " DM_URL_MARIADB_FORM);
    if (url->has_tls && url->path)
        return dm_url_complain(ret_reason, "TLS by a socket's path is not of use: remove its options");
    if (url->servername)
        return dm_url_complain(ret_reason,
                               "libmariadb checks the host that the URL names: remove the option servername");
    return strlen(url->prefix) <= MARIADB_PREFIX_MAX ||
           dm_url_complain(ret_reason, "the option prefix is longer than 54 characters, as a table's name would be");
}

static bool read_tls(struct dm_url *url, struct dm_part where, char *ret_reason)
{
    url->has_tls = true;
    return read_tcp(url, where, ret_reason);
}

/*
 * [login@]/path.  The path begins with the first slash and includes it.  Text between the login and the path would look
 * like a host, and is refused.  The length is checked after decoding, because the kernel gets the decoded path.
 */
static bool read_unix(struct dm_url *url, struct dm_part where, char *ret_reason)
{
    const char *slash = memchr(where.text, '/', where.length);
    struct dm_part login = where;

    url->kind = DM_URL_UNIX;
    login.length = slash ? (size_t)(slash - where.text) : 0;
    if (!read_login(url, &login, ret_reason))
        return false;
    if (!slash || login.length)
        return dm_url_complain(ret_reason, "a socket is written unix:///path");
    where.length -= (size_t)(slash - where.text);
    where.text = slash;
    if (!dm_part_set(&url->path, where))
        return dm_url_complain(ret_reason, "the path cannot be decoded");
    if (strlen(url->path) >= sizeof((struct sockaddr_un *)0)->sun_path)
        return dm_url_complain(ret_reason, "the socket's path is longer than 107 bytes");
    return true;
}

/* Has no login and no address: dm_local_place() sets the path.  The option grace= is read later. */
static bool read_local(struct dm_url *url, struct dm_part where, char *ret_reason)
{
    url->kind = DM_URL_LOCAL;
    url->has_grace = false;
    url->is_grace_found = true;
    return where.length == 0 || dm_url_complain(ret_reason, "nothing but ?options follows \"local:\"");
}

/* The path is the name of a node. */
static bool check_zookeeper(const struct dm_url *url, char *ret_reason)
{
    return url->kind != DM_URL_ZOOKEEPER || (strcmp(url->prefix, ".") != 0 && strcmp(url->prefix, "..") != 0) ||
           dm_url_complain(ret_reason, "ZooKeeper has no node of the name \".\" or \"..\": choose another path");
}

/* Nobody shall keep locks in memcached by mistake.  Called after all options are parsed, as the next ones. */
static bool check_lossy(const struct dm_url *url, char *ret_reason)
{
    return url->kind != DM_URL_MEMCACHED || url->is_lossy ||
           dm_url_complain(ret_reason,
                           "memcached forgets locks when its memory is full, and the deaths of owners whenever "
                           "it starts again: use another server, or write ?lossy=yes if two owners at a "
                           "time would do no harm");
}

/* Options may come in any order. */
static bool check_tls(const struct dm_url *url, char *ret_reason)
{
    if (url->kind == DM_URL_MEMCACHED && (url->has_tls || url->user || url->password))
        return dm_url_complain(ret_reason, "memcached:// has neither TLS nor a login");
    if (!url->has_tls)
        return (!url->cacert && !url->cert && !url->key && !url->servername && url->is_verified) ||
               dm_url_complain(ret_reason,
                               "cacert, cert, key, servername and verify are for TLS: write rediss://, or tls=yes");
    if (!DM_HAVE_TLS)
        return dm_url_complain(ret_reason,
                               "this libdmutex was built without TLS: build it with OpenSSL 3 (libssl-dev)");
    if (url->kind == DM_URL_LOCAL)
        return dm_url_complain(ret_reason, "local: has no TLS, because its socket is for this user alone");
    if (url->key && !url->cert)
        return dm_url_complain(ret_reason, "the key is without its certificate: add cert");
    return !url->is_verified || url->kind != DM_URL_UNIX || url->servername ||
           dm_url_complain(ret_reason, "TLS by a socket's path needs servername, the name in the server's certificate");
}

/*
 * Called after all options are parsed.  A request that a replaced master executes late was sent up to command_timeout
 * before; a shorter switch time would not cover it.
 */
static bool check_switch(const struct dm_url *url, char *ret_reason)
{
    return !url->switch_ms || url->switch_ms >= url->command_timeout_ms ||
           dm_url_complain(ret_reason, "the option switch is shorter than command_timeout: make one of them fit");
}

static const struct scheme {
    const char *text;
    bool (*read)(struct dm_url *, struct dm_part, char *);
    bool is_list; /* of servers, between commas */
} schemes[] = {
    { "redis://", read_tcp, false },
    { "rediss://", read_tls, false },
    { "unix://", read_unix, true },
    { "local:", read_local, false },
    { "redis+sentinel://", read_sentinel, true },
    { "redis+cluster://", read_cluster, true },
    { "redis+quorum://", read_quorum, true },
    { "etcd://", read_etcd, true },
    { "etcds://", read_etcds, true },
    { "memcached://", read_memcached, true },
    { "mariadb://", read_mariadb, true },
    { "mysql://", read_mariadb, true },
    { "zookeeper://", read_zookeeper, true },
    { "zookeepers://", read_zookeepers, true },
};

static bool begins_with(struct dm_part part, const char *text)
{
    return part.length >= strlen(text) && strncasecmp(part.text, text, strlen(text)) == 0;
}

/*
 * The length of this scheme at the beginning of the text; 0: it begins with another.  Schemes are case-insensitive (RFC
 * 3986), and valkey may stand for redis.
 */
static size_t length_of(struct dm_part text, const char *scheme)
{
    struct dm_part rest = text;

    if (begins_with(text, scheme))
        return strlen(scheme);
    if (strncmp(scheme, "redis", 5) != 0 || !begins_with(text, "valkey"))
        return 0;
    rest.text += strlen("valkey");
    rest.length -= strlen("valkey");
    return begins_with(rest, scheme + strlen("redis")) ? strlen(scheme) + 1 : 0;
}

/* For a text with none of our schemes: the form that its writer may have meant. */
static const char *meant(struct dm_part where)
{
    static const struct {
        const char *text, *sentence;
    } others[] = {
        { "redis-sentinel://", DM_URL_SENTINEL_FORM },
        { "rediss-sentinel://", DM_URL_SENTINEL_FORM "?tls=yes" },
        { "rediss+sentinel://", DM_URL_SENTINEL_FORM "?tls=yes" },
        { "sentinel://", DM_URL_SENTINEL_FORM },
        { "redis-cluster://", DM_URL_CLUSTER_FORM },
        { "rediss-cluster://", DM_URL_CLUSTER_FORM "?tls=yes" },
        { "rediss+cluster://", DM_URL_CLUSTER_FORM "?tls=yes" },
        { "cluster://", DM_URL_CLUSTER_FORM },
        { "rediss+quorum://", DM_URL_QUORUM_FORM "?tls=yes" },
        { "redis-quorum://", DM_URL_QUORUM_FORM },
        { "redlock://", DM_URL_QUORUM_FORM },
    };

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (length_of(where, others[i].text))
            return others[i].sentence;
    }
    return "it does not begin with redis://, rediss://, valkey://, valkeys://, unix://, redis+sentinel://, "
           "redis+cluster://, redis+quorum://, postgresql://, etcd://, etcds://, zookeeper://, zookeepers://, "
           "memcached://, mariadb://, mysql:// or \"local:\"";
}

/* True if, before the options, there is a complete login or certainly none: a password would follow a colon. */
static bool has_whole_login(struct dm_part where)
{
    return memchr(where.text, '@', where.length) || !memchr(where.text, ':', where.length);
}

/*
 * Splits the options off first, so any other '?' must be encoded.  For a single server a comma is refused, because a
 * list would look like one host with an odd name; so a comma in a login must be encoded there, too.
 */
static bool read_url(struct dm_url *url, struct dm_part text, char *ret_reason)
{
    struct dm_part behind = text;
    bool found;
    struct dm_part where = dm_part_cut(&behind, '?', &found);

    if (dm_url_is_postgres(text))
        return dm_url_read_postgres(url, text, ret_reason);
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        const struct scheme *scheme = &schemes[i];
        size_t length = length_of(where, scheme->text);

        if (length == 0)
            continue;
        if (memchr(where.text, ',', where.length) && !scheme->is_list)
            return dm_url_complain(ret_reason, "one server is meant here; " DM_URL_LIST_FORMS);
        where.text += length;
        where.length -= length;
        return scheme->read(url, where, ret_reason) &&
               dm_url_read_options(url, behind, has_whole_login(where), ret_reason) && check_tls(url, ret_reason) &&
               check_lossy(url, ret_reason) && check_switch(url, ret_reason) && check_mariadb(url, ret_reason) &&
               check_zookeeper(url, ret_reason);
    }
    return dm_url_complain(ret_reason, meant(where));
}

/* Blanks are not removed silently: one may belong to a password, which ends with it in all other programs. */
static bool check_ends(const char *text, char *ret_reason)
{
    static const char blanks[] = " \t\r\n";
    size_t length = strlen(text);

    if (length && strchr(blanks, text[length - 1]))
        return dm_url_complain(ret_reason, "it ends with a blank or a line break: take that away");
    if (length && strchr(blanks, text[0]))
        return dm_url_complain(ret_reason, "it begins with a blank or a line break: take that away");
    return true;
}

struct dm_url *dm_url_parse(const char *text, char ret_reason[DM_REASON_ROOM])
{
    struct dm_url *url;

    errno = 0; /* malloc sets errno */
    url = calloc(1, sizeof *url);
    /* Overwritten by each failure that has its own sentence; a lack of memory may have none. */
    snprintf(ret_reason, DM_REASON_ROOM, "out of memory");
    if (!url)
        return NULL;
    url->connect_timeout_ms = url->command_timeout_ms = DEFAULT_TIMEOUT_MS;
    url->has_grace = url->is_verified = true;
    url->prefix = strdup(DEFAULT_PREFIX);
    if (url->prefix && check_ends(text, ret_reason) && read_url(url, dm_part_rest(text), ret_reason))
        return url;
    dm_url_free(url);
    return NULL;
}

void dm_url_free(struct dm_url *url)
{
    if (!url)
        return;
    free(url->host);
    free(url->port);
    free(url->path);
    free(url->user);
    dm_login_wipe(url->password);
    for (int i = 0; i < url->host_count; i++) {
        free(url->hosts[i].host);
        free(url->hosts[i].port);
    }
    free(url->master);
    free(url->sentinel_user);
    dm_login_wipe(url->sentinel_password);
    free(url->sentinel_password_file);
    free(url->user_file);
    free(url->password_file);
    dm_login_wipe(url->database);
    free(url->prefix);
    free(url->servername);
    free(url->cacert);
    free(url->cert);
    free(url->key);
    free(url);
}

struct dm_place_text dm_url_place(const char *host, const char *port)
{
    bool is_v6 = strchr(host, ':');
    struct dm_place_text place;

    snprintf(place.text, sizeof place.text, "%s%s%s:%s", is_v6 ? "[" : "", host, is_v6 ? "]" : "", port);
    return place;
}

static struct dm_place_text first_place(const struct dm_url *url)
{
    return dm_url_place(url->hosts[0].host, url->hosts[0].port);
}

void dm_url_describe(const struct dm_url *url, char *buf, size_t size)
{
    if (url->kind == DM_URL_TCP)
        snprintf(buf, size, "%s", dm_url_place(url->host, url->port).text);
    else if (url->kind == DM_URL_SENTINEL)
        snprintf(buf, size, "%s of the sentinel %s", url->master, first_place(url).text);
    else if (url->kind == DM_URL_CLUSTER)
        snprintf(buf, size, "the Cluster of %s", first_place(url).text);
    else if (url->kind == DM_URL_QUORUM)
        snprintf(buf, size, "%d servers, %s the first", url->host_count, first_place(url).text);
    else if (url->kind == DM_URL_POSTGRES)
        dm_url_describe_postgres(url, buf, size);
    else if (url->kind == DM_URL_ETCD || url->kind == DM_URL_ZOOKEEPER)
        snprintf(buf, size, "%s at %s", url->kind == DM_URL_ETCD ? "etcd" : "ZooKeeper", first_place(url).text);
    else if (url->kind == DM_URL_MEMCACHED)
        snprintf(buf, size, "memcached at %s", url->path ? url->path : dm_url_place(url->host, url->port).text);
    else if (url->kind == DM_URL_MARIADB)
        snprintf(buf, size, "MariaDB at %s", url->path ? url->path : first_place(url).text);
    else
        snprintf(buf, size, "%s", url->path ? url->path : "local:");
}
