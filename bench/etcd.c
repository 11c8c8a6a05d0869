/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A private etcd of one member, and the bare locks on it, by its JSON gateway on blocking connections.
 *
 * A bare lock is one key, which is swapped if its revision is the known one.  Its value names the holder and those who
 * wait, with dots to the length of the library's usual value.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <math.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "bench.h"
#include "server.h"
#include "store.h"
#include "stores/etcd/json.h"

enum { VALUE_LEAST = 300, VALUE_MOST = 4000, ANSWER_MOST = 65536 };

/* ---- connections ----------------------------------------------------------------- */

struct link {
    int fd;
    char answer[ANSWER_MOST];
    size_t size; /* of what has been read and not been taken */
};

static bool link_open(struct link *link, const struct bench_server *server)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)server->port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int on = 1;

    link->size = 0;
    link->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (link->fd < 0 || connect(link->fd, (struct sockaddr *)&address, sizeof address) < 0) {
        close(link->fd);
        return false;
    }
    setsockopt(link->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return true;
}

static void post(struct link *link, const char *path, const char *body)
{
    static char text[10000];
    int length = snprintf(text, sizeof text, "POST %s HTTP/1.1\r\nHost: etcd\r\nContent-Length: %zu\r\n\r\n%s", path,
                          strlen(body), body);

    if (length >= (int)sizeof text || send(link->fd, text, (size_t)length, MSG_NOSIGNAL) != length)
        bench_die("etcd has gone");
}

static void read_more(struct link *link)
{
    ssize_t got = read(link->fd, link->answer + link->size, sizeof link->answer - 1 - link->size);

    if (got <= 0)
        bench_die("etcd has gone");
    link->size += (size_t)got;
    link->answer[link->size] = '\0';
}

/* Short answers have a length. */
static const char *whole_answer(const struct link *link)
{
    const char *end = strstr(link->answer, "\r\n\r\n"), *length = strstr(link->answer, "Content-Length: ");

    if (!end)
        return NULL;
    if (!length || length > end)
        bench_die("etcd's answer has no length");
    return strlen(end + 4) < (size_t)atol(length + strlen("Content-Length: ")) ? NULL : end + 4;
}

/* Valid until the next call. */
static struct dm_json ask(struct link *link, const char *path, const char *body)
{
    struct dm_json json;
    const char *answer;

    link->size = 0;
    link->answer[0] = '\0';
    post(link, path, body);
    do
        read_more(link);
    while (!(answer = whole_answer(link)));
    json = dm_json_check(answer);
    if (!json.at || dm_json_get(json, "code").at)
        bench_die(answer);
    return json;
}

/* ---- bare locks ------------------------------------------------------------------ */

struct bare_key {
    struct link *link, *watch;
    char key[96], inbox[96]; /* in base64 */
    char owner[16];
    char value[VALUE_MOST + 1]; /* as we know it: "HOLDER WAITER WAITER ....", "" if it is absent */
    int64_t revision;           /* of it; 0: it is absent */
};

static void write_base64(char *ret_text, size_t room, const char *text)
{
    struct dm_bytes bytes = { 0 };

    dm_bytes_add_base64(&bytes, text, strlen(text));
    snprintf(ret_text, room, "%s", bytes.at);
    dm_bytes_free(&bytes);
}

static void take_value(struct bare_key *bare, struct dm_json kv)
{
    size_t size = 0;
    const char *raw = dm_json_raw(dm_json_get(kv, "value"), &size);
    long length = raw ? dm_base64_decode(raw, size, bare->value, VALUE_MOST) : 0;

    bare->value[length > 0 ? length : 0] = '\0';
    bare->revision = dm_json_int64(dm_json_get(kv, "mod_revision"));
}

static void fill(char value[VALUE_MOST + 1])
{
    for (size_t length = strlen(value); length < VALUE_LEAST; length++)
        memcpy(value + length, ".", 2);
}

/* Swaps the value; if it was another one, false, and the newer value is known.  Tells `next`, unless NULL. */
static bool swap(struct bare_key *bare, const char *words, const char *next)
{
    static char body[8192], value[VALUE_MOST + 1], encoded[VALUE_MOST * 4 / 3 + 8], inbox[96], name[32];
    struct dm_json answer;
    int length;

    snprintf(value, sizeof value, "%s", words);
    fill(value);
    write_base64(encoded, sizeof encoded, value);
    length = snprintf(body, sizeof body,
                      "{\"compare\":[{\"key\":\"%s\",\"target\":\"MOD\",\"mod_revision\":\"%" PRId64
                      "\"}],\"success\":[{\"request_put\":{\"key\":\"%s\",\"value\":\"%s\"}}",
                      bare->key, bare->revision, bare->key, encoded);
    if (next) {
        snprintf(name, sizeof name, "/bare/i/%s", next);
        write_base64(inbox, sizeof inbox, name);
        length += snprintf(body + length, sizeof body - (size_t)length,
                           ",{\"request_put\":{\"key\":\"%s\",\"value\":\"Z28=\"}}", inbox);
    }
    snprintf(body + length, sizeof body - (size_t)length, "],\"failure\":[{\"request_range\":{\"key\":\"%s\"}}]}",
             bare->key);
    answer = ask(bare->link, "/v3/kv/txn", body);
    if (dm_json_is_true(dm_json_get(answer, "succeeded"))) {
        snprintf(bare->value, sizeof bare->value, "%s", value);
        bare->revision = dm_json_int64(dm_json_get(dm_json_get(answer, "header"), "revision"));
        return true;
    }
    take_value(bare, dm_json_first(dm_json_get(
                         dm_json_get(dm_json_first(dm_json_get(answer, "responses")), "response_range"), "kvs")));
    return false;
}

static void *open_bare(const struct bench_server *server, const char *name, int owner, void *sibling)
{
    struct bare_key *bare = calloc(1, sizeof *bare), *other = sibling;
    char text[72];

    if (!bare)
        bench_die("no memory");
    snprintf(bare->owner, sizeof bare->owner, "%d", owner);
    snprintf(text, sizeof text, "/bare/r/%s", name);
    write_base64(bare->key, sizeof bare->key, text);
    snprintf(text, sizeof text, "/bare/i/%d", owner);
    write_base64(bare->inbox, sizeof bare->inbox, text);
    bare->link = other ? other->link : calloc(1, sizeof *bare->link);
    if (!bare->link || (!other && !link_open(bare->link, server)))
        bench_die("etcd does not answer");
    return bare;
}

static void lock_pair(void *lock)
{
    struct bare_key *bare = lock;

    while (!swap(bare, bare->owner, NULL))
        continue;
}

static void unlock_pair(void *lock)
{
    while (!swap(lock, "", NULL))
        continue;
}

static bool is_free(const struct bare_key *bare)
{
    return bare->value[0] == '\0' || bare->value[0] == '.';
}

static void read_value(struct bare_key *bare)
{
    char body[128];

    snprintf(body, sizeof body, "{\"key\":\"%s\"}", bare->key);
    take_value(bare, dm_json_first(dm_json_get(ask(bare->link, "/v3/kv/range", body), "kvs")));
}

static void lock_polled(void *lock)
{
    struct bare_key *bare = lock;

    while (!is_free(bare) || !swap(bare, bare->owner, NULL)) {
        if (is_free(bare))
            continue;
        bench_pause(0.001);
        read_value(bare);
    }
}

static void unlock_polled(void *lock)
{
    if (!swap(lock, "", NULL))
        bench_die("the bare lock has been stolen");
}

/* ---- the grant: a queue in the value, and a watch ----------------------------------- */

static void await_line(struct link *watch, const char *word)
{
    char *at;

    while (!(at = strstr(watch->answer, word)) || !strchr(at, '\n'))
        read_more(watch);
    watch->size = 0;
    watch->answer[0] = '\0';
}

static void *open_grant(const struct bench_server *server, const char *name, int owner, void *sibling)
{
    struct bare_key *bare = open_bare(server, name, owner, sibling);
    char body[256];

    bare->watch = calloc(1, sizeof *bare->watch);
    if (!bare->watch || !link_open(bare->watch, server))
        bench_die("etcd does not answer");
    snprintf(body, sizeof body, "{\"create_request\":{\"key\":\"%s\"}}", bare->inbox);
    post(bare->watch, "/v3/watch", body);
    await_line(bare->watch, "\"created\":true");
    return bare;
}

/* The words of the value, without its dots. */
static void copy_words(const struct bare_key *bare, char ret_words[VALUE_MOST + 1])
{
    snprintf(ret_words, VALUE_MOST + 1, "%.*s", (int)strcspn(bare->value, "."), bare->value);
}

static void lock_grant(void *lock)
{
    struct bare_key *bare = lock;
    char words[VALUE_MOST + 1];
    bool was_free;

    do {
        copy_words(bare, words);
        was_free = words[0] == '\0';
        if (strlen(words) + strlen(bare->owner) + 1 > VALUE_MOST)
            bench_die("too many wait for a bare lock");
        snprintf(words + strlen(words), sizeof words - strlen(words), "%s%s", was_free ? "" : " ", bare->owner);
    } while (!swap(bare, words, NULL));
    if (!was_free)
        await_line(bare->watch, "\"events\"");
}

static void unlock_grant(void *lock)
{
    struct bare_key *bare = lock;
    char words[VALUE_MOST + 1], next[16];
    const char *rest;

    do {
        copy_words(bare, words);
        rest = strchr(words, ' ');
        rest = rest ? rest + 1 : "";
        snprintf(next, sizeof next, "%.*s", (int)strcspn(rest, " "), rest);
    } while (!swap(bare, rest, next[0] ? next : NULL));
}

/* ---- the server ------------------------------------------------------------------ */

static void serve(const struct bench_server *server, int core)
{
    char client[48], peer[48], cluster[64];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    bench_pin(0, core);
    snprintf(client, sizeof client, "http://127.0.0.1:%d", server->port);
    snprintf(peer, sizeof peer, "http://127.0.0.1:%d", bench_free_port());
    snprintf(cluster, sizeof cluster, "default=%s", peer);
    if (chdir(server->directory) < 0 || !freopen("log", "a", stdout) || dup2(1, 2) < 0)
        bench_die("no folder for etcd");
    execlp("etcd", "etcd", "--data-dir", "data", "--listen-client-urls", client, "--advertise-client-urls", client,
           "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", cluster, "--logger",
           "zap", (char *)NULL);
}

static struct dm_json ask_status(struct link *link, const struct bench_server *server)
{
    struct dm_json status;

    if (!link_open(link, server))
        bench_die("etcd has gone");
    status = ask(link, "/v3/maintenance/status", "{}");
    close(link->fd);
    return status;
}

/* A member answers once there is a leader. */
static void await(const struct bench_server *server)
{
    static struct link link;

    while (!link_open(&link, server)) {
        if (waitpid(server->pid, NULL, WNOHANG) != 0)
            bench_die("etcd does not start: is etcd-server installed?");
        bench_pause(0.02);
    }
    while (ask(&link, "/v3/maintenance/status", "{}"), !strstr(link.answer, "\"leader\""))
        bench_pause(0.02);
    close(link.fd);
}

static void write_url(struct bench_server *server)
{
    snprintf(server->url, sizeof server->url, "etcd://127.0.0.1:%d?grace=off", server->port);
}

static void write_version(const struct bench_server *server, char *buf, size_t size)
{
    static struct link link;
    char version[32];

    dm_json_text(dm_json_get(ask_status(&link, server), "version"), version, sizeof version);
    snprintf(buf, size, "etcd %s", version);
}

/* Refused swaps are entries of the log, too. */
static void count(const struct bench_server *server, struct bench_counts *ret_counts)
{
    static struct link link;

    ret_counts->commands = (double)dm_json_int64(dm_json_get(ask_status(&link, server), "raftIndex"));
    ret_counts->messages = ret_counts->server_us = NAN;
}

/* A revision is a transaction that has written, so the rest of the log's entries have been refused. */
static double revisions(const struct bench_server *server)
{
    static struct link link;

    return (double)dm_json_int64(dm_json_get(dm_json_get(ask_status(&link, server), "header"), "revision"));
}

const struct bench_store bench_etcd = {
    .name = "etcd",
    .commands = "entries of the log",
    .bare = { [BARE_PAIR] = { "two swaps", open_bare, lock_pair, unlock_pair },
              [BARE_POLL] = { "swap", open_bare, lock_polled, unlock_polled },
              [BARE_GRANT] = { "bare grant", open_grant, lock_grant, unlock_grant } },
    .serve = serve,
    .await = await,
    .write_url = write_url,
    .write_version = write_version,
    .count = count,
    .rows_written = revisions,
};
