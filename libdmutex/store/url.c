/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/url.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "config.h"
#include "store/login.h"

#define DEFAULT_PORT "6379"
#define DEFAULT_PREFIX "dmutex"
#define DEFAULT_TIMEOUT_MS 2000
#define TIMEOUT_MAX_MS 3600000 /* an hour */
#define PREFIX_MAX 64
#define DB_MAX 999999

/* A part of the URL, not yet decoded. Points into the caller's text, which has no NUL at the end of the part. */
struct part {
    const char *text;
    size_t length;
};

/* A sentence quotes no part of the URL, because a bad URL may have the user's name or password in any part. */
static bool complain(char *ret_reason, const char *sentence)
{
    snprintf(ret_reason, DM_REASON_ROOM, "%s", sentence);
    return false;
}

static struct part rest(const char *text)
{
    return (struct part){ text, strlen(text) };
}

/* Cuts the text before `mark` off `*from`; all of `*from` when there is no mark. */
static struct part cut(struct part *from, char mark, bool *ret_found)
{
    const char *at = memchr(from->text, mark, from->length);
    struct part head = *from;

    *ret_found = at != NULL;
    if (at) {
        head.length = (size_t)(at - from->text);
        from->text = at + 1;
        from->length -= head.length + 1;
    } else {
        from->text += from->length;
        from->length = 0;
    }
    return head;
}

/*
 * Returns the value of a hexadecimal digit, or -1. The cast keeps bytes above 127 from being negative, which <ctype.h>
 * does not allow.
 */
static int hex_value(char digit)
{
    if (!isxdigit((unsigned char)digit))
        return -1;
    return isdigit((unsigned char)digit) ? digit - '0' : tolower((unsigned char)digit) - 'a' + 10;
}

/*
 * Percent-decodes into new memory; NULL for a bad escape, a NUL, or without memory. A bad escape counts as a NUL, which
 * is refused because the text behind the NUL would be lost.
 */
static char *decode(struct part part)
{
    char *out = malloc(part.length + 1);
    size_t used = 0;

    for (size_t i = 0; out && i < part.length; i++) {
        int byte = (unsigned char)part.text[i];

        if (byte == '%') {
            int high = i + 2 < part.length ? hex_value(part.text[i + 1]) : -1;
            int low = high >= 0 ? hex_value(part.text[i + 2]) : -1;

            byte = low >= 0 ? high * 16 + low : 0;
            i += 2;
        }
        if (byte == 0) {
            out[used] = '\0';
            dm_login_wipe(out); /* the begin of a password, perhaps */
            return NULL;
        }
        out[used++] = (char)byte;
    }
    if (out)
        out[used] = '\0';
    return out;
}

/* Takes digits alone, unlike strtoul(), which takes blanks and a sign, too. Nine digits at most fit into 32 bits. */
static bool read_number(struct part part, unsigned least, unsigned most, unsigned *ret_number)
{
    unsigned long number = 0;

    if (part.length == 0 || part.length > 9)
        return false;
    for (size_t i = 0; i < part.length; i++) {
        if (!isdigit((unsigned char)part.text[i]))
            return false;
        number = number * 10 + (unsigned)(part.text[i] - '0');
    }
    if (number < least || number > most)
        return false;
    *ret_number = (unsigned)number;
    return true;
}

/* Frees the former text, because an option may be there twice: the last one counts. */
static bool set_text(char **slot, struct part value)
{
    free(*slot);
    *slot = decode(value);
    return *slot != NULL;
}

/* ASCII alone, by name: isalnum() takes other bytes in some locales, and keys of one URL must not depend on that. */
static bool is_of_prefix(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
           byte == '.' || byte == '_' || byte == '-';
}

/*
 * Looks at the bytes before decoding, so an escape is refused, too: a prefix is part of each key, and is to be read
 * there as in the URL.
 */
static bool set_prefix(struct dm_url *url, struct part value)
{
    if (value.length == 0 || value.length > PREFIX_MAX)
        return false;
    for (size_t i = 0; i < value.length; i++) {
        if (!is_of_prefix(value.text[i]))
            return false;
    }
    return set_text(&url->prefix, value);
}

/*
 * Tells a path if the path begins with a slash and stands behind any login: else the path may be the password
 * itself.
 */
static bool complain_of_file(char *ret_reason, const char *option, const char *path, struct part value, const char *why)
{
    if (path[0] == '/' && !strchr(value.text, '@'))
        snprintf(ret_reason, DM_REASON_ROOM, "%s \"%.120s\": %.120s", option, path, why);
    else
        snprintf(ret_reason, DM_REASON_ROOM, "the %s: %.120s", option, why);
    return false;
}

/* The file is read again later, when the process may work in another folder. */
static char *absolute(const char *path)
{
    char *folder, *joined = NULL;

    if (path[0] == '/')
        return strdup(path);
    folder = getcwd(NULL, 0);
    if (folder && asprintf(&joined, "%s/%s", folder, path) < 0)
        joined = NULL;
    free(folder);
    return joined;
}

/* The first line of the file takes the place of a text in the URL. */
static bool read_file(char **file, char **text, const char *option, struct part value, char *ret_reason)
{
    char *path = decode(value), why[DM_REASON_ROOM] = "its path cannot be decoded", *line;

    free(*file);
    *file = path ? absolute(path) : NULL;
    line = *file ? dm_login_read_line(*file, why) : NULL;
    if (line) {
        dm_login_wipe(*text);
        *text = line;
    } else {
        complain_of_file(ret_reason, option, path ? path : "", value, why);
    }
    free(path);
    return line != NULL;
}

/* Certificates and keys are read for each connection; a path that cannot be read now is a mistake. */
static bool set_path(char **slot, const char *option, struct part value, char *ret_reason)
{
    free(*slot);
    *slot = decode(value);
    if (!*slot || (*slot)[0] != '/')
        return complain_of_file(ret_reason, option, "", value, "it is not an absolute path");
    if (euidaccess(*slot, R_OK) < 0)
        return complain_of_file(ret_reason, option, *slot, value, strerror(errno));
    return true;
}

static bool is_word(struct part part, const char *word)
{
    return part.length == strlen(word) && memcmp(part.text, word, part.length) == 0;
}

static bool set_connect_timeout(struct dm_url *url, struct part value)
{
    return read_number(value, 1, TIMEOUT_MAX_MS, &url->connect_timeout_ms);
}

static bool set_command_timeout(struct dm_url *url, struct part value)
{
    return read_number(value, 1, TIMEOUT_MAX_MS, &url->command_timeout_ms);
}

/* Refused for redis://HOST/DB, whose path has the number, so that no URL names two databases. */
static bool set_db(struct dm_url *url, struct part value)
{
    return url->kind == DM_URL_UNIX && read_number(value, 0, DB_MAX, &url->db);
}

/* There is no word for the default, by which a server that may evict keys is not accepted. */
static bool set_eviction(struct dm_url *url, struct part value)
{
    return url->may_evict = is_word(value, "allow");
}

static bool set_grace(struct dm_url *url, struct part value)
{
    url->has_grace = is_word(value, "on");
    return url->has_grace || is_word(value, "off");
}

/* rediss:// always has TLS. */
static bool set_tls(struct dm_url *url, struct part value)
{
    if (is_word(value, "no"))
        return !url->has_tls;
    url->has_tls = true;
    return is_word(value, "yes");
}

/* There is no other word than "none" for less than all checks. */
static bool set_verify(struct dm_url *url, struct part value)
{
    url->is_verified = is_word(value, "full");
    return url->is_verified || is_word(value, "none");
}

static bool set_servername(struct dm_url *url, struct part value)
{
    return value.length > 0 && set_text(&url->servername, value);
}

/*
 * Options whose failure is told by the list of good values; files tell more, in set_file().
 *
 * A prefix has no colon: rights on a prefix, "~billing:*", would cover a longer prefix behind the colon.
 */
static const struct option {
    const char *name, *values;
    bool (*set)(struct dm_url *, struct part value);
} options[] = {
    { "connect_timeout", "1..3600000 milliseconds", set_connect_timeout },
    { "command_timeout", "1..3600000 milliseconds", set_command_timeout },
    { "db", "0..999999, of unix:// alone (redis://host/DB has it in the path)", set_db },
    { "prefix", "1..64 letters, digits, \".\", \"_\" and \"-\"", set_prefix },
    { "eviction", "\"allow\"", set_eviction },
    { "grace", "\"on\" or \"off\"", set_grace },
    { "tls", "\"yes\" or \"no\" (rediss:// always has it)", set_tls },
    { "verify", "\"full\" or \"none\"", set_verify },
    { "servername", "the name in the server's certificate", set_servername },
};

/* True if the key names a file; *ret_is_good says whether the file can be used. */
static bool set_file(struct dm_url *url, struct part key, struct part value, char *ret_reason, bool *ret_is_good)
{
    if (is_word(key, "password_file"))
        *ret_is_good = read_file(&url->password_file, &url->password, "password_file", value, ret_reason);
    else if (is_word(key, "user_file"))
        *ret_is_good = read_file(&url->user_file, &url->user, "user_file", value, ret_reason);
    else if (is_word(key, "cacert"))
        *ret_is_good = set_path(&url->cacert, "cacert", value, ret_reason);
    else if (is_word(key, "cert"))
        *ret_is_good = set_path(&url->cert, "cert", value, ret_reason);
    else if (is_word(key, "key"))
        *ret_is_good = set_path(&url->key, "key", value, ret_reason);
    else
        return false;
    return true;
}

static bool set_option(struct dm_url *url, struct part key, struct part value, char *ret_reason)
{
    bool is_good;

    if (set_file(url, key, value, ret_reason, &is_good))
        return is_good;
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        if (!is_word(key, options[i].name))
            continue;
        if (options[i].set(url, value))
            return true;
        snprintf(ret_reason, DM_REASON_ROOM, "the option %s is not %s", options[i].name, options[i].values);
        return false;
    }
    return complain(ret_reason, "an option is none of connect_timeout, command_timeout, db, prefix, user_file, "
                                "password_file, eviction, grace, tls, cacert, cert, key, servername and verify");
}

/* Reads name=value between '&'s. An empty option is refused, as an option without '='; a '&' at the very end is not. */
static bool read_options(struct dm_url *url, struct part left, char *ret_reason)
{
    bool found;

    while (left.length) {
        struct part option = cut(&left, '&', &found);
        struct part key = cut(&option, '=', &found);

        if (!found)
            return complain(ret_reason, "an option is written name=value");
        if (!set_option(url, key, option, ret_reason))
            return false;
    }
    return true;
}

/*
 * user[:password]@ at the beginning, if there. The last '@' ends the login and the first ':' the user, so a password
 * may have both signs unencoded. A '/' or '?' there must be encoded, because the URL is cut at these signs before.
 */
static bool read_login(struct dm_url *url, struct part *from, char *ret_reason)
{
    const char *at = memrchr(from->text, '@', from->length);
    struct part login, user;
    bool has_password;

    if (!at)
        return true;
    login = (struct part){ from->text, (size_t)(at - from->text) };
    from->length -= login.length + 1;
    from->text = at + 1;
    user = cut(&login, ':', &has_password);
    if (user.length && !set_text(&url->user, user))
        return complain(ret_reason, "the user name cannot be decoded");
    if (has_password && !set_text(&url->password, login))
        return complain(ret_reason, "the password cannot be decoded");
    return true;
}

/* A number of up to five digits is told; other text may be the password of a login without the @. */
static bool complain_of_port(char *ret_reason, struct part port)
{
    unsigned number;

    if (port.length > 5 || !read_number(port, 0, 99999, &number))
        return complain(ret_reason, "the port is not in 1..65535 (a user and password end with an @)");
    snprintf(ret_reason, DM_REASON_ROOM, "the port is not in 1..65535: \"%u\"", number);
    return false;
}

/*
 * host[:port], an IPv6 address in brackets: without brackets the first colon of the address would begin the port. The
 * port stays a text after the check, because getaddrinfo() takes a text.
 */
static bool read_address(struct dm_url *url, struct part address, char *ret_reason)
{
    struct part host = address, port = rest(DEFAULT_PORT);
    bool found;
    unsigned number;

    if (address.length && address.text[0] == '[') {
        host = (struct part){ address.text + 1, address.length - 1 };
        address = host;
        host = cut(&address, ']', &found);
        if (!found || (address.length && address.text[0] != ':'))
            return complain(ret_reason, "an IPv6 address is written [address]:port");
        if (address.length)
            port = (struct part){ address.text + 1, address.length - 1 };
    } else {
        host = cut(&address, ':', &found);
        if (found)
            port = address;
    }
    if (host.length == 0)
        return complain(ret_reason, "the host is missing");
    if (!read_number(port, 1, 65535, &number))
        return complain_of_port(ret_reason, port);
    return (set_text(&url->host, host) && set_text(&url->port, port)) ||
           complain(ret_reason, "the host cannot be decoded");
}

/*
 * [login@]host[:port][/db]. The first slash ends the address; without a number behind the slash, and without a slash,
 * the database is 0.
 */
static bool read_tcp(struct dm_url *url, struct part where, char *ret_reason)
{
    bool has_db;
    struct part db = where;
    struct part address = cut(&db, '/', &has_db);

    url->kind = DM_URL_TCP;
    if (db.length && !read_number(db, 0, DB_MAX, &url->db))
        return complain(ret_reason, "the database is not a number in 0..999999");
    return read_login(url, &address, ret_reason) && read_address(url, address, ret_reason);
}

static bool read_tls(struct dm_url *url, struct part where, char *ret_reason)
{
    url->has_tls = true;
    return read_tcp(url, where, ret_reason);
}

/*
 * [login@]/path. The path begins with the first slash, which belongs to the path; text between the login and the path
 * would look like a host, and is refused. The length is compared after decoding, because the kernel gets the decoded
 * path.
 */
static bool read_unix(struct dm_url *url, struct part where, char *ret_reason)
{
    const char *slash = memchr(where.text, '/', where.length);
    struct part login = where;

    url->kind = DM_URL_UNIX;
    login.length = slash ? (size_t)(slash - where.text) : 0;
    if (!read_login(url, &login, ret_reason))
        return false;
    if (!slash || login.length)
        return complain(ret_reason, "a socket is written unix:///path");
    where.length -= (size_t)(slash - where.text);
    where.text = slash;
    if (!set_text(&url->path, where))
        return complain(ret_reason, "the path cannot be decoded");
    if (strlen(url->path) >= sizeof((struct sockaddr_un *)0)->sun_path)
        return complain(ret_reason, "the socket's path is longer than 107 bytes");
    return true;
}

/*
 * No login and no address: the caller of dm_url_parse() knows the place of local servers. The option grace=on, read
 * later, brings the grace back.
 */
static bool read_local(struct dm_url *url, struct part where, char *ret_reason)
{
    url->kind = DM_URL_LOCAL;
    url->has_grace = false; /* the server was started anew because nobody used the old server */
    return where.length == 0 || complain(ret_reason, "nothing but ?options follows \"local:\"");
}

/* After all options, which may come in any order. */
static bool check_tls(const struct dm_url *url, char *ret_reason)
{
    if (!url->has_tls)
        return (!url->cacert && !url->cert && !url->key && !url->servername && url->is_verified) ||
               complain(ret_reason,
                        "cacert, cert, key, servername and verify are for TLS: write rediss://, or tls=yes");
    if (!DM_HAVE_TLS)
        return complain(ret_reason, "this libdmutex was built without TLS: build it with OpenSSL 3 (libssl-dev)");
    if (url->kind == DM_URL_LOCAL)
        return complain(ret_reason, "local: has no TLS, because its socket is for this user alone");
    if (url->key && !url->cert)
        return complain(ret_reason, "the key is without its certificate: add cert");
    return !url->is_verified || url->host || url->servername ||
           complain(ret_reason, "TLS by a socket's path needs servername, the name in the server's certificate");
}

/*
 * Cuts the options off first, so a '?' before the options must be encoded. A comma is refused, except in unix://,
 * because a list would look like one host with an odd name; so a comma in a login must be encoded, too. Schemes of
 * later versions have a sentence of their own.
 */
static bool read_url(struct dm_url *url, struct part text, char *ret_reason)
{
    static const struct {
        const char *scheme;
        bool (*read)(struct dm_url *, struct part, char *);
    } schemes[] = {
        { "redis://", read_tcp }, { "rediss://", read_tls }, { "unix://", read_unix }, { "local:", read_local }
    };
    static const char *const later[] = { "redis+sentinel://", "redis+cluster://" };
    struct part behind = text;
    bool found;
    struct part where = cut(&behind, '?', &found);

    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        size_t length = strlen(schemes[i].scheme);

        if (where.length < length || memcmp(where.text, schemes[i].scheme, length) != 0)
            continue;
        if (memchr(where.text, ',', where.length) && schemes[i].read != read_unix)
            return complain(ret_reason, "a list of servers is not possible in this version");
        where.text += length;
        where.length -= length;
        return schemes[i].read(url, where, ret_reason) && read_options(url, behind, ret_reason) &&
               check_tls(url, ret_reason);
    }
    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++) {
        if (strncmp(text.text, later[i], strlen(later[i])) == 0) {
            snprintf(ret_reason, DM_REASON_ROOM, "%s is not possible in this version", later[i]);
            return false;
        }
    }
    return complain(ret_reason, "it does not begin with redis://, rediss://, unix:// or \"local:\"");
}

struct dm_url *dm_url_parse(const char *text, char ret_reason[DM_REASON_ROOM])
{
    struct dm_url *url;

    errno = 0; /* malloc sets errno */
    url = calloc(1, sizeof *url);
    /* Overwritten by each failure that has a sentence; without memory some have none. */
    snprintf(ret_reason, DM_REASON_ROOM, "out of memory");
    if (!url)
        return NULL;
    url->connect_timeout_ms = url->command_timeout_ms = DEFAULT_TIMEOUT_MS;
    url->has_grace = url->is_verified = true;
    url->prefix = strdup(DEFAULT_PREFIX);
    if (url->prefix && read_url(url, rest(text), ret_reason))
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
    free(url->user_file);
    free(url->password_file);
    free(url->prefix);
    free(url->servername);
    free(url->cacert);
    free(url->cert);
    free(url->key);
    free(url);
}

void dm_url_describe(const struct dm_url *url, char *buf, size_t size)
{
    if (url->kind == DM_URL_TCP)
        snprintf(buf, size, "%s:%s", url->host, url->port);
    else
        snprintf(buf, size, "%s", url->path ? url->path : "local:");
}
