/* SPDX-License-Identifier: BSD-2-Clause */
#include "stores/etcd/http.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/minmax.h"

#define RECEIVES_MOST 16
#define HEADER_MOST ((size_t)16 * 1024)
#define BODY_KEPT ((size_t)64 * 1024) /* memory for the next answer */

void dm_http_begin(struct dm_http *http, struct dm_stream stream, size_t body_most)
{
    *http = (struct dm_http){ .stream = stream, .body_most = body_most };
}

/* ---- an answer ----------------------------------------------------------------------------- */

static bool fail(char ret_reason[DM_REASON_ROOM], const char *sentence)
{
    snprintf(ret_reason, DM_REASON_ROOM, "%s", sentence);
    return false;
}

static bool is_no_http(char ret_reason[DM_REASON_ROOM])
{
    return fail(ret_reason, "what answers there does not speak HTTP/1.1: is it etcd?");
}

static bool is_too_long(char ret_reason[DM_REASON_ROOM])
{
    return fail(ret_reason, "its answer is longer than any of etcd: is it etcd?");
}

static bool read_status(struct dm_http *http, const char *line, char ret_reason[DM_REASON_ROOM])
{
    if (strncmp(line, "HTTP/1.", 7) != 0 || strlen(line) < 12)
        return is_no_http(ret_reason);
    http->status = atoi(line + 9);
    http->must_close = line[7] == '0';
    http->state = DM_HTTP_HEADER;
    return true;
}

/* The value of a header of this name, or NULL. */
static const char *header_of(const char *line, const char *name)
{
    size_t length = strlen(name);

    if (strncasecmp(line, name, length) != 0 || line[length] != ':')
        return NULL;
    return line + length + 1 + strspn(line + length + 1, " \t");
}

static bool read_header(struct dm_http *http, const char *line, char ret_reason[DM_REASON_ROOM])
{
    const char *value;

    if (line[0]) {
        if ((value = header_of(line, "Content-Length")))
            http->left = strtoull(value, NULL, 10);
        else if ((value = header_of(line, "Transfer-Encoding")))
            http->is_chunked = strcasecmp(value, "chunked") == 0;
        else if ((value = header_of(line, "Connection")))
            http->must_close |= strcasecmp(value, "close") == 0;
        return true;
    }
    if (http->status / 100 == 1)
        http->state = DM_HTTP_STATUS;
    else if (http->is_chunked)
        http->state = DM_HTTP_CHUNK_SIZE;
    else
        http->state = http->left ? DM_HTTP_BODY : DM_HTTP_ANSWERED;
    return http->left <= http->body_most || is_too_long(ret_reason);
}

static bool read_chunk_size(struct dm_http *http, const char *line, char ret_reason[DM_REASON_ROOM])
{
    char *end;

    http->left = strtoull(line, &end, 16);
    if (end == line)
        return is_no_http(ret_reason);
    if (http->left > http->body_most)
        return is_too_long(ret_reason);
    http->state = http->left ? DM_HTTP_BODY : DM_HTTP_TRAILER;
    return true;
}

/* A whole line, without its end. */
static bool read_line(struct dm_http *http, const char *line, char ret_reason[DM_REASON_ROOM])
{
    switch (http->state) {
    case DM_HTTP_STATUS:
        return read_status(http, line, ret_reason);
    case DM_HTTP_HEADER:
        return read_header(http, line, ret_reason);
    case DM_HTTP_CHUNK_SIZE:
        return read_chunk_size(http, line, ret_reason);
    case DM_HTTP_CHUNK_END:
        http->state = DM_HTTP_CHUNK_SIZE;
        return line[0] == '\0' || is_no_http(ret_reason);
    case DM_HTTP_TRAILER:
        if (!line[0])
            http->state = DM_HTTP_ANSWERED;
        return true;
    default: /* nothing was asked for */
        return is_no_http(ret_reason);
    }
}

/* Takes bytes up to the end of a line.  Returns how many, or 0 with the reason. */
static size_t take_line(struct dm_http *http, const char *bytes, size_t size, char ret_reason[DM_REASON_ROOM])
{
    const char *end = memchr(bytes, '\n', size);
    size_t taken = end ? (size_t)(end - bytes) + 1 : size;
    bool is_well;

    http->header =
        http->state == DM_HTTP_CHUNK_SIZE || http->state == DM_HTTP_CHUNK_END ? http->line.size : http->header + taken;
    if (http->header > HEADER_MOST) {
        is_no_http(ret_reason);
        return 0;
    }
    dm_bytes_add(&http->line, bytes, end ? taken - 1 : taken);
    if (!end)
        return taken;
    dm_bytes_add(&http->line, "", 1);
    if (http->line.is_short) {
        fail(ret_reason, "out of memory");
        return 0;
    }
    if (http->line.size > 1 && http->line.at[http->line.size - 2] == '\r')
        http->line.at[http->line.size - 2] = '\0';
    is_well = read_line(http, http->line.at, ret_reason);
    http->line.size = 0;
    return is_well ? taken : 0;
}

static size_t take_body(struct dm_http *http, const char *bytes, size_t size, char ret_reason[DM_REASON_ROOM])
{
    size_t taken = size < http->left ? size : http->left;

    if (http->body.size + taken > http->body_most) {
        is_too_long(ret_reason);
        return 0;
    }
    dm_bytes_add(&http->body, bytes, taken);
    http->left -= taken;
    if (http->left == 0)
        http->state = http->is_chunked ? DM_HTTP_CHUNK_END : DM_HTTP_ANSWERED;
    if (!http->body.is_short)
        return taken;
    fail(ret_reason, "out of memory");
    return 0;
}

static bool take(struct dm_http *http, const char *bytes, size_t size, char ret_reason[DM_REASON_ROOM])
{
    while (size) {
        size_t taken = http->state == DM_HTTP_BODY ? take_body(http, bytes, size, ret_reason)
                                                   : take_line(http, bytes, size, ret_reason);

        if (!taken)
            return false;
        bytes += taken;
        size -= taken;
    }
    return true;
}

/* ---- the connection ------------------------------------------------------------------------ */

static bool explain(const struct dm_http *http, char ret_reason[DM_REASON_ROOM])
{
    int error = errno;
    const char *reason = dm_stream_reason(&http->stream);

    if (reason[0])
        return fail(ret_reason, reason);
    return fail(ret_reason, error ? dm_text_error(error) : "it has closed the connection");
}

/* False with errno. */
static bool send_now(struct dm_http *http)
{
    ssize_t sent = 1;

    while (http->sent < http->out.size && sent > 0) {
        sent = dm_stream_send(&http->stream, http->out.at + http->sent, http->out.size - http->sent);
        if (sent < 0)
            return false;
        http->sent += (size_t)sent;
    }
    if (http->sent == http->out.size)
        http->sent = http->out.size = 0;
    return true;
}

bool dm_http_ask(struct dm_http *http, const char *host, const char *path, const char *token,
                 const struct dm_bytes *body)
{
    bool is_whole = !body || !body->is_short;

    if (http->body.room > BODY_KEPT)
        dm_bytes_free(&http->body);
    http->body.size = http->header = 0;
    http->is_chunked = false;
    http->left = 0;
    dm_bytes_print(&http->out, "%s %s HTTP/1.1\r\nHost: %s\r\n", body ? "POST" : "GET", path, host);
    if (body)
        dm_bytes_print(&http->out, "Content-Type: application/json\r\nContent-Length: %zu\r\n", body->size);
    if (token[0])
        dm_bytes_print(&http->out, "Authorization: %s\r\n", token);
    dm_bytes_add(&http->out, "\r\n", 2);
    if (body)
        dm_bytes_add(&http->out, body->at, body->size);
    http->state = DM_HTTP_STATUS;
    send_now(http); /* what fails fails again in the next turn */
    return !http->out.is_short && is_whole;
}

bool dm_http_turn(struct dm_http *http, char ret_reason[DM_REASON_ROOM])
{
    ssize_t got = 1;

    if (!send_now(http))
        return explain(http, ret_reason);
    for (int i = 0; i < RECEIVES_MOST && got > 0; i++) {
        got = dm_stream_receive(&http->stream, http->in, sizeof http->in);
        if (got < 0)
            return explain(http, ret_reason);
        if (!take(http, http->in, (size_t)got, ret_reason))
            return false;
        if ((size_t)got < sizeof http->in && !dm_stream_holds(&http->stream))
            break;
    }
    return !(http->state == DM_HTTP_IDLE && http->must_close) || fail(ret_reason, "it has closed the connection");
}

bool dm_http_has_more(const struct dm_http *http)
{
    return dm_stream_holds(&http->stream) || dm_stream_is_cut(&http->stream);
}

short dm_http_events(const struct dm_http *http)
{
    return dm_stream_events(&http->stream, http->out.size > http->sent);
}

static void free_all(struct dm_http *http)
{
    dm_bytes_free(&http->out);
    dm_bytes_free(&http->line);
    dm_bytes_free(&http->body);
    http->state = DM_HTTP_IDLE;
}

void dm_http_close(struct dm_http *http)
{
    dm_stream_close(&http->stream);
    free_all(http);
}

void dm_http_forget(struct dm_http *http)
{
    dm_stream_forget(&http->stream);
}
