/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * HTTP/1.1 as a client of etcd's JSON gateway needs it: requests on a connection that stays open, one at a time; an
 * answer whose length is known, or in chunks, which may come for hours.  Never blocks, and does a bounded amount of
 * work at a time.
 */
#ifndef DM_ETCD_HTTP_H
#define DM_ETCD_HTTP_H

#include "base/bytes.h"
#include "link/stream.h"

enum dm_http_state {
    DM_HTTP_IDLE,       /* no request is under way */
    DM_HTTP_STATUS,     /* its answer is awaited: the status line, */
    DM_HTTP_HEADER,     /* a line of the header, */
    DM_HTTP_BODY,       /* bytes of the body or of a chunk, */
    DM_HTTP_CHUNK_END,  /* the end of the line after a chunk, */
    DM_HTTP_CHUNK_SIZE, /* the line before a chunk, */
    DM_HTTP_TRAILER,    /* or lines after the last chunk */
    DM_HTTP_ANSWERED    /* `status` and `body` are the answer */
};

/* The caller's lock guards a connection. */
struct dm_http {
    struct dm_stream stream;
    struct dm_bytes out;
    size_t sent; /* of `out` */
    enum dm_http_state state;
    int status;
    bool is_chunked, must_close;
    size_t left;          /* bytes of the body or chunk that have not come */
    struct dm_bytes line; /* the beginning of a line */
    size_t header;        /* bytes of the header so far */
    struct dm_bytes body; /* whatever has come of it; the caller may take bytes off the beginning */
    size_t body_most;     /* the connection ends if it is longer */
    char in[4096];
};

/* Takes over a connected stream. */
void dm_http_begin(struct dm_http *http, struct dm_stream stream, size_t body_most);

/*
 * Sends a request: POST, or GET without a body.  No other may be under way, and the body of the last answer is gone.
 * False without memory.
 */
bool dm_http_ask(struct dm_http *http, const char *host, const char *path, const char *token,
                 const struct dm_bytes *body);

/*
 * Sends and receives what can be sent and received now, up to some 64 KiB.  False if the connection is of no more use,
 * with the reason.
 */
bool dm_http_turn(struct dm_http *http, char ret_reason[DM_REASON_ROOM]);

/* The turn ended at its limit, or bytes wait inside the stream: another turn is due at once. */
bool dm_http_has_more(const struct dm_http *http);

short dm_http_events(const struct dm_http *http);

void dm_http_close(struct dm_http *http);
/* In a forked child. */
void dm_http_forget(struct dm_http *http);

#endif
