/* SPDX-License-Identifier: BSD-2-Clause */
#include "etcdserver.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../lib/testlib.h"
#include "base/bytes.h"
#include "stores/etcd/json.h"

static const char *program(void)
{
    const char *given = getenv("DMUTEX_TEST_ETCD");

    return given && *given ? given : "/usr/bin/etcd";
}

bool etcdserver_is_possible(void)
{
    return access(program(), X_OK) == 0;
}

/* ---- asking -------------------------------------------------------------------------------- */

static int connect_to(int port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

/* The whole answer, with its header, or NULL. */
static const char *ask(int port, const char *path, const char *body)
{
    static char answer[65536];
    char head[256];
    size_t size = 0;
    ssize_t got = 1;
    int fd = connect_to(port);

    if (fd < 0)
        return NULL;
    snprintf(head, sizeof head, "POST %s HTTP/1.0\r\nContent-Length: %zu\r\n\r\n", path, strlen(body));
    dprintf(fd, "%s%s", head, body);
    while (got > 0 && size < sizeof answer - 1) {
        got = read(fd, answer + size, sizeof answer - 1 - size);
        size += got > 0 ? (size_t)got : 0;
    }
    answer[size] = '\0';
    close(fd);
    return answer;
}

const char *etcdserver_ask(const struct etcdserver *server, int member, const char *path, const char *body)
{
    const char *answer = ask(server->ports[member], path, body), *end;

    assert_non_null(answer);
    end = strstr(answer, "\r\n\r\n");
    assert_non_null(end);
    return end + 4;
}

static void add(struct dm_bytes *body, const char *name, const char *text)
{
    dm_bytes_print(body, "\"%s\":\"", name);
    dm_bytes_add_base64(body, text, strlen(text));
    dm_bytes_print(body, "\"");
}

static bool put(const struct etcdserver *server, const char *key, const char *value)
{
    struct dm_bytes body = { 0 };
    bool is_done;

    dm_bytes_print(&body, "{");
    add(&body, "key", key);
    dm_bytes_print(&body, ",");
    add(&body, "value", value);
    dm_bytes_print(&body, "}");
    is_done = strstr(etcdserver_ask(server, 0, "/v3/kv/put", body.at), "revision");
    dm_bytes_free(&body);
    return is_done;
}

void etcdserver_put(const struct etcdserver *server, const char *key, const char *value)
{
    assert_true(put(server, key, value));
}

void etcdserver_fill(const struct etcdserver *server)
{
    static char value[60000];

    memset(value, 'x', sizeof value - 1);
    while (put(server, "filler", value))
        continue;
}

static void order(const struct etcdserver *server, const char *path, const char *body)
{
    const char *answer = etcdserver_ask(server, 0, path, body);

    if (strstr(answer, "\"code\""))
        fail_msg("%s: %s", path, answer);
}

void etcdserver_make_room(const struct etcdserver *server)
{
    struct dm_bytes body = { 0 };
    struct dm_json header;
    char revision[24], member[24];

    dm_bytes_print(&body, "{");
    add(&body, "key", "filler");
    dm_bytes_print(&body, "}");
    header = dm_json_get(dm_json_check(etcdserver_ask(server, 0, "/v3/kv/deleterange", body.at)), "header");
    dm_json_text(dm_json_get(header, "revision"), revision, sizeof revision);
    dm_json_text(dm_json_get(header, "member_id"), member, sizeof member);
    body.size = 0;
    dm_bytes_print(&body, "{\"revision\":\"%s\",\"physical\":true}", revision);
    order(server, "/v3/kv/compaction", body.at);
    order(server, "/v3/maintenance/defragment", "{}");
    body.size = 0;
    dm_bytes_print(&body, "{\"action\":\"DEACTIVATE\",\"alarm\":\"NOSPACE\",\"memberID\":\"%s\"}", member);
    order(server, "/v3/maintenance/alarm", body.at);
    dm_bytes_free(&body);
}

void etcdserver_use_login(const struct etcdserver *server, const char *user, const char *password, const char *from,
                          const char *to)
{
    struct dm_bytes body = { 0 };
    const char *at;

    order(server, "/v3/auth/user/add", "{\"name\":\"root\",\"password\":\"root\"}");
    order(server, "/v3/auth/user/grant", "{\"user\":\"root\",\"role\":\"root\"}");
    order(server, "/v3/auth/role/add", "{\"name\":\"locks\"}");
    dm_bytes_print(&body, "{\"name\":\"locks\",\"perm\":{\"permType\":\"READWRITE\",");
    add(&body, "key", from);
    dm_bytes_print(&body, ",");
    add(&body, "range_end", to);
    dm_bytes_print(&body, "}}");
    order(server, "/v3/auth/role/grant", body.at);
    dm_bytes_free(&body);
    dm_bytes_print(&body, "{\"name\":\"%s\",\"password\":\"", user);
    for (at = password; *at; at++)
        dm_bytes_print(&body, "%s%c", *at == '"' ? "\\" : "", *at);
    dm_bytes_print(&body, "\"}");
    order(server, "/v3/auth/user/add", body.at);
    dm_bytes_free(&body);
    dm_bytes_print(&body, "{\"user\":\"%s\",\"role\":\"locks\"}", user);
    order(server, "/v3/auth/user/grant", body.at);
    dm_bytes_free(&body);
    order(server, "/v3/auth/enable", "{}");
}

/* ---- keys ---------------------------------------------------------------------------------- */

/* Asks for a key, or for all that begin so, and returns a member of the answer. */
static struct dm_json range(const struct etcdserver *server, const char *key, bool is_prefix)
{
    struct dm_bytes body = { 0 };
    char end[256];
    struct dm_json answer;

    snprintf(end, sizeof end, "%s", key);
    end[strlen(end) - 1]++;
    dm_bytes_print(&body, "{");
    add(&body, "key", key);
    if (is_prefix) {
        dm_bytes_print(&body, ",");
        add(&body, "range_end", end);
    }
    dm_bytes_print(&body, "}");
    answer = dm_json_check(etcdserver_ask(server, 0, "/v3/kv/range", body.at));
    assert_non_null(answer.at);
    dm_bytes_free(&body);
    return answer;
}

const char *etcdserver_version_of(const struct etcdserver *server, const char *key)
{
    static char text[32];

    dm_json_text(dm_json_get(dm_json_first(dm_json_get(range(server, key, false), "kvs")), "mod_revision"), text,
                 sizeof text);
    return text;
}

int etcdserver_count(const struct etcdserver *server, const char *prefix)
{
    return (int)dm_json_int64(dm_json_get(range(server, prefix, true), "count"));
}

int etcdserver_count_connections(const struct etcdserver *server)
{
    char line[256];
    unsigned port, state;
    int count = 0;
    FILE *file = fopen("/proc/net/tcp", "r");

    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "%*d: %*x:%*x %*x:%x %x", &port, &state) == 2)
            count += port == (unsigned)server->ports[0] && state == 1; /* established */
    }
    fclose(file);
    return count;
}

/* ---- members ------------------------------------------------------------------------------- */

static pid_t spawn(const struct etcdserver *server, const char *const *arguments)
{
    pid_t pid = keeper_fork();
    int log;

    if (pid == 0) {
        if (chdir(server->folder) < 0)
            _exit(98);
        log = open("log", O_WRONLY | O_CREAT | O_APPEND, 0644);
        dup2(log, 1);
        dup2(log, 2);
        execv(arguments[0], (char *const *)arguments);
        _exit(97);
    }
    return pid;
}

static void spawn_member(struct etcdserver *server, int member)
{
    char cluster[256] = "", name[16], data[16], client[128], peer[64], quota[16];
    const char *arguments[] = { program(), "--name",
                                name,      "--data-dir",
                                data,      "--listen-client-urls",
                                client,    "--advertise-client-urls",
                                client,    "--listen-peer-urls",
                                peer,      "--initial-advertise-peer-urls",
                                peer,      "--initial-cluster",
                                cluster,   "--logger",
                                "zap",     "--quota-backend-bytes",
                                quota,     server->tls_port ? "--cert-file" : NULL,
                                "tls.crt", "--key-file",
                                "tls.key", NULL };

    for (int i = 0; i < server->count; i++)
        snprintf(cluster + strlen(cluster), sizeof cluster - strlen(cluster), "%sm%d=http://127.0.0.1:%d", i ? "," : "",
                 i, server->peer_ports[i]);
    snprintf(quota, sizeof quota, "%d", server->quota);
    snprintf(name, sizeof name, "m%d", member);
    snprintf(data, sizeof data, "data%d", member);
    snprintf(client, sizeof client, "http://127.0.0.1:%d", server->ports[member]);
    if (server->tls_port)
        snprintf(client + strlen(client), sizeof client - strlen(client), ",https://127.0.0.1:%d", server->tls_port);
    snprintf(peer, sizeof peer, "http://127.0.0.1:%d", server->peer_ports[member]);
    server->pids[member] = spawn(server, arguments);
}

/* A member answers once there is a leader. */
static bool serves(const struct etcdserver *server, int member)
{
    const char *answer = ask(server->ports[member], "/v3/kv/range", "{\"key\":\"AA==\"}");

    return answer && strstr(answer, " 200 OK");
}

static struct etcdserver *make(int members)
{
    struct etcdserver *server = calloc(1, sizeof *server);

    assert_non_null(server);
    keeper_make_folder(server->folder, sizeof server->folder);
    server->count = members;
    snprintf(server->url, sizeof server->url, "etcd://");
    for (int i = 0; i < members; i++) {
        server->ports[i] = server_free_port();
        server->peer_ports[i] = server_free_port();
        snprintf(server->url + strlen(server->url), sizeof server->url - strlen(server->url), "%s127.0.0.1:%d",
                 i ? "," : "", server->ports[i]);
    }
    return server;
}

struct etcdserver *etcdserver_start(int members)
{
    struct etcdserver *server = make(members);

    etcdserver_restart_all(server);
    return server;
}

struct etcdserver *etcdserver_start_with_quota(int bytes)
{
    struct etcdserver *server = make(1);

    server->quota = bytes;
    etcdserver_restart(server, 0);
    return server;
}

struct etcdserver *etcdserver_start_with_tls(const char *certificate, const char *key)
{
    struct etcdserver *server = make(1);
    char command[256];

    snprintf(command, sizeof command, "cp %s %s/tls.crt && cp %s %s/tls.key", certificate, server->folder, key,
             server->folder);
    assert_int_equal(system(command), 0);
    server->tls_port = server_free_port();
    snprintf(server->url, sizeof server->url, "etcds://127.0.0.1:%d", server->tls_port);
    etcdserver_restart(server, 0);
    return server;
}

void etcdserver_kill(struct etcdserver *server, int member)
{
    kill(server->pids[member], SIGKILL);
    keeper_reap(server->pids[member]);
    server->pids[member] = 0;
}

void etcdserver_restart(struct etcdserver *server, int member)
{
    spawn_member(server, member);
    wait_until(serves(server, member));
}

void etcdserver_restart_all(struct etcdserver *server)
{
    for (int i = 0; i < server->count; i++) {
        if (!server->pids[i])
            spawn_member(server, i);
    }
    for (int i = 0; i < server->count; i++)
        wait_until(serves(server, i));
}

static void copy(const struct etcdserver *server, const char *from, const char *to)
{
    char command[128];

    snprintf(command, sizeof command, "cd %s && rm -rf %s && cp -a %s %s", server->folder, to, from, to);
    assert_int_equal(system(command), 0);
}

void etcdserver_save(const struct etcdserver *server)
{
    copy(server, "data0", "saved");
}

void etcdserver_restore(const struct etcdserver *server)
{
    copy(server, "saved", "data0");
}

void etcdserver_end(struct etcdserver *server)
{
    for (int i = 0; i < server->count; i++) {
        if (server->pids[i])
            etcdserver_kill(server, i);
    }
    keeper_remove_folder(server->folder);
    free(server);
}
