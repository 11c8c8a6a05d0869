/* SPDX-License-Identifier: BSD-2-Clause */
#include "zkserver.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "../lib/testlib.h"
#include "stores/zookeeper/wire.h"

static const char *login;

static const char *class_path(void)
{
    const char *given = getenv("DMUTEX_TEST_ZOOKEEPER");

    return given && *given ? given : "/usr/share/java/zookeeper.jar";
}

bool zkserver_is_possible(void)
{
    return access(getenv("DMUTEX_TEST_ZOOKEEPER") ? "/" : class_path(), R_OK) == 0 &&
           access("/usr/bin/java", X_OK) == 0;
}

/* ---- asking -------------------------------------------------------------------------------- */

static int connect_to(int port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    const struct timeval patience = { .tv_sec = 1 };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    /* It may never answer who has come while it was starting. */
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

static bool send_all(int fd, const struct dm_bytes *bytes)
{
    return send(fd, bytes->at, bytes->size, MSG_NOSIGNAL) == (ssize_t)bytes->size;
}

static void add_head(struct dm_bytes *bytes, int xid, int type)
{
    dm_jute_add_int(bytes, xid);
    dm_jute_add_int(bytes, type);
}

/* The next frame; false if the server has closed the connection. */
static bool receive(int fd, struct dm_jute *ret_frame)
{
    static uint8_t frame[1 << 20];
    uint8_t head[4];
    struct dm_jute jute = { .at = head, .left = sizeof head };
    int32_t size;

    if (recv(fd, head, sizeof head, MSG_WAITALL) != (ssize_t)sizeof head)
        return false;
    size = dm_jute_int(&jute);
    assert_true(size >= 0 && (size_t)size <= sizeof frame);
    *ret_frame = (struct dm_jute){ .at = frame, .left = (size_t)size };
    return recv(fd, frame, (size_t)size, MSG_WAITALL) == size;
}

static void add_hello(struct dm_bytes *bytes)
{
    static const char password[16];
    size_t begin = dm_jute_begin(bytes);

    dm_jute_add_int(bytes, 0);
    dm_jute_add_long(bytes, 0);
    dm_jute_add_int(bytes, 10000);
    dm_jute_add_long(bytes, 0);
    dm_jute_add_bytes(bytes, password, sizeof password);
    dm_jute_add_bool(bytes, false);
    dm_jute_end(bytes, begin);
}

static void add_login(struct dm_bytes *bytes)
{
    size_t begin;

    if (!login)
        return;
    begin = dm_jute_begin(bytes);
    add_head(bytes, DM_ZK_LOG_IN_XID, DM_ZK_LOG_IN);
    dm_jute_add_int(bytes, 0);
    dm_jute_add_text(bytes, "digest");
    dm_jute_add_text(bytes, login);
    dm_jute_end(bytes, begin);
}

static bool ask(int port, int type, const struct dm_bytes *request, int *ret_error, struct dm_jute *ret_answer)
{
    struct dm_bytes bytes = { 0 };
    int fd = connect_to(port);
    size_t begin;
    bool is_answered;

    if (fd < 0)
        return false;
    add_hello(&bytes);
    is_answered = send_all(fd, &bytes) && receive(fd, ret_answer); /* before that, the server reads nothing more */
    bytes.size = 0;
    add_login(&bytes);
    begin = dm_jute_begin(&bytes);
    add_head(&bytes, 1, type);
    dm_bytes_add(&bytes, request->at, request->size);
    dm_jute_end(&bytes, begin);
    begin = dm_jute_begin(&bytes);
    add_head(&bytes, 2, DM_ZK_CLOSE);
    dm_jute_end(&bytes, begin);
    is_answered = is_answered && send_all(fd, &bytes);
    while (is_answered && (is_answered = receive(fd, ret_answer)) && dm_jute_int(ret_answer) != 1)
        continue;
    if (is_answered) {
        dm_jute_long(ret_answer);
        *ret_error = dm_jute_int(ret_answer);
    }
    close(fd);
    dm_bytes_free(&bytes);
    return is_answered;
}

int zkserver_ask(const struct zkserver *server, int type, const struct dm_bytes *request, struct dm_jute *ret_answer)
{
    int error = 0;
    bool is_answered = false;

    for (int i = 0; i < server->count && !is_answered; i++)
        is_answered = server->pids[i] && ask(server->ports[i], type, request, &error, ret_answer);
    assert_true(is_answered);
    return error;
}

void zkserver_use_login(const char *text)
{
    login = text;
}

/* ---- nodes --------------------------------------------------------------------------------- */

void zkserver_make(const struct zkserver *server, const char *path, const char *value)
{
    struct dm_bytes request = { 0 };
    struct dm_jute answer;

    dm_jute_add_text(&request, path);
    dm_jute_add_text(&request, value);
    dm_jute_add_int(&request, 1);
    dm_jute_add_int(&request, 31); /* all rights */
    dm_jute_add_text(&request, login ? "auth" : "world");
    dm_jute_add_text(&request, login ? "" : "anyone");
    dm_jute_add_int(&request, 0);
    assert_int_equal(zkserver_ask(server, DM_ZK_CREATE, &request, &answer), 0);
    dm_bytes_free(&request);
}

static int ask_for_children(const struct zkserver *server, const char *path, struct dm_jute *ret_answer)
{
    struct dm_bytes request = { 0 };
    int error;

    dm_jute_add_text(&request, path);
    dm_jute_add_bool(&request, false);
    error = zkserver_ask(server, DM_ZK_CHILDREN, &request, ret_answer);
    dm_bytes_free(&request);
    return error;
}

void zkserver_delete(const struct zkserver *server, const char *path)
{
    struct dm_bytes request = { 0 };
    struct dm_jute answer;
    char child[512];

    while (ask_for_children(server, path, &answer) == 0 && dm_jute_int(&answer) > 0) {
        size_t size;
        const char *name = dm_jute_bytes(&answer, &size);

        snprintf(child, sizeof child, "%s/%.*s", path, (int)size, name);
        zkserver_delete(server, child);
    }
    dm_jute_add_text(&request, path);
    dm_jute_add_int(&request, -1);
    assert_int_equal(zkserver_ask(server, DM_ZK_DELETE, &request, &answer), 0);
    dm_bytes_free(&request);
}

void zkserver_set_epoch(const struct zkserver *server, const char *epoch)
{
    char path[64];

    zkserver_delete(server, "/dmutex/epoch");
    zkserver_make(server, "/dmutex/epoch", "");
    snprintf(path, sizeof path, "/dmutex/epoch/%s", epoch);
    zkserver_make(server, path, "");
}

const char *zkserver_version_of(const struct zkserver *server, const char *path)
{
    static char text[32];
    struct dm_bytes request = { 0 };
    struct dm_jute answer;

    text[0] = '\0';
    dm_jute_add_text(&request, path);
    dm_jute_add_bool(&request, false);
    if (zkserver_ask(server, DM_ZK_EXISTS, &request, &answer) == 0)
        snprintf(text, sizeof text, "%lld", (long long)dm_jute_stat(&answer).changed_zxid);
    dm_bytes_free(&request);
    return text;
}

int zkserver_count(const struct zkserver *server, const char *path, const char *prefix)
{
    struct dm_jute answer;
    int count = 0;

    if (ask_for_children(server, path, &answer) != 0)
        return 0;
    for (int left = dm_jute_int(&answer); left > 0; left--) {
        size_t size;
        const char *name = dm_jute_bytes(&answer, &size);

        count += size >= strlen(prefix) && memcmp(name, prefix, strlen(prefix)) == 0;
    }
    return count;
}

int zkserver_count_connections(const struct zkserver *server)
{
    char line[256];
    unsigned port, state;
    int count = 0;
    const char *const tables[] = { "/proc/net/tcp", "/proc/net/tcp6" };

    for (int i = 0; i < 2; i++) {
        FILE *file = fopen(tables[i], "r");

        while (file && fgets(line, sizeof line, file)) {
            if (sscanf(line, "%*d: %*[0-9A-F]:%*x %*[0-9A-F]:%x %x", &port, &state) == 2)
                count += port == (unsigned)server->ports[0] && state == 1; /* established */
        }
        if (file)
            fclose(file);
    }
    return count;
}

/* ---- members ------------------------------------------------------------------------------- */

static pid_t spawn(const struct zkserver *server, int member)
{
    char classes[1024], configuration[16];
    pid_t pid = keeper_fork();
    int log;

    /* Debian's package forgets what Netty needs beside itself. */
    snprintf(classes, sizeof classes, "%s:%s:/usr/share/java/netty-codec.jar:/usr/share/java/netty-resolver.jar",
             server->folder, class_path());
    snprintf(configuration, sizeof configuration, "zoo%d.cfg", member);
    if (pid == 0) {
        if (chdir(server->folder) < 0)
            _exit(98);
        log = open("log", O_WRONLY | O_CREAT | O_APPEND, 0644);
        dup2(log, 1);
        dup2(log, 2);
        execl("/usr/bin/java", "java", "-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
              "-XX:-UsePerfData", "-Dzookeeper.admin.enableServer=false", "-Dzookeeper.jmx.log4j.disable=true", "-cp",
              classes, "org.apache.zookeeper.server.quorum.QuorumPeerMain", configuration, (char *)NULL);
        _exit(97);
    }
    return pid;
}

static void write_configuration(const struct zkserver *server, int member)
{
    char path[64];
    FILE *file;

    snprintf(path, sizeof path, "%s/zoo%d.cfg", server->folder, member);
    file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file,
            "tickTime=500\ninitLimit=20\nsyncLimit=10\ndataDir=data%d\nclientPort=%d\nclientPortAddress=127.0.0.1\n"
            "maxClientCnxns=0\n4lw.commands.whitelist=srvr\n",
            member, server->ports[member]);
    for (int i = 0; server->count > 1 && i < server->count; i++)
        fprintf(file, "server.%d=127.0.0.1:%d:%d\n", i + 1, server->quorum_ports[i], server->election_ports[i]);
    if (server->tls_port)
        fprintf(file,
                "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\nsecureClientPort=%d\n"
                "secureClientPortAddress=127.0.0.1\nssl.clientAuth=none\nssl.keyStore.location=tls.pem\n"
                "ssl.keyStore.type=PEM\nssl.trustStore.location=tls.pem\nssl.trustStore.type=PEM\n",
                server->tls_port);
    fclose(file);
}

static void run(const struct zkserver *server, const char *format, ...)
{
    char command[512];
    va_list arguments;
    int size = snprintf(command, sizeof command, "cd %s && ", server->folder);

    va_start(arguments, format);
    vsnprintf(command + size, sizeof command - (size_t)size, format, arguments);
    va_end(arguments);
    assert_int_equal(system(command), 0);
}

/* A member gives sessions once there is a leader. */
static bool serves(const struct zkserver *server, int member)
{
    struct dm_bytes request = { 0 };
    struct dm_jute answer;
    bool is_answered;
    int error;

    dm_jute_add_text(&request, "/");
    dm_jute_add_bool(&request, false);
    is_answered = ask(server->ports[member], DM_ZK_EXISTS, &request, &error, &answer);
    dm_bytes_free(&request);
    return is_answered;
}

static struct zkserver *make(int members)
{
    struct zkserver *server = calloc(1, sizeof *server);

    assert_non_null(server);
    keeper_make_folder(server->folder, sizeof server->folder);
    server->count = members;
    snprintf(server->url, sizeof server->url, "zookeeper://");
    for (int i = 0; i < members; i++) {
        server->ports[i] = server_free_port();
        server->quorum_ports[i] = server_free_port();
        server->election_ports[i] = server_free_port();
        snprintf(server->url + strlen(server->url), sizeof server->url - strlen(server->url), "%s127.0.0.1:%d",
                 i ? "," : "", server->ports[i]);
        run(server, "mkdir data%d && echo %d >data%d/myid", i, i + 1, i);
    }
    return server;
}

struct zkserver *zkserver_start(int members)
{
    struct zkserver *server = make(members);

    zkserver_restart_all(server);
    return server;
}

struct zkserver *zkserver_start_with_tls(const char *certificate, const char *key)
{
    struct zkserver *server = make(1);

    run(server, "cat %s %s >tls.pem", key, certificate);
    server->tls_port = server_free_port();
    snprintf(server->url, sizeof server->url, "zookeepers://127.0.0.1:%d", server->tls_port);
    zkserver_restart_all(server);
    return server;
}

void zkserver_kill(struct zkserver *server, int member)
{
    kill(server->pids[member], SIGKILL);
    keeper_reap(server->pids[member]);
    server->pids[member] = 0;
}

static void start_member(struct zkserver *server, int member)
{
    write_configuration(server, member);
    server->pids[member] = spawn(server, member);
}

void zkserver_restart(struct zkserver *server, int member)
{
    start_member(server, member);
    wait_until(serves(server, member));
}

void zkserver_restart_all(struct zkserver *server)
{
    for (int i = 0; i < server->count; i++) {
        if (!server->pids[i])
            start_member(server, i);
    }
    for (int i = 0; i < server->count; i++)
        wait_until(serves(server, i));
}

void zkserver_save(const struct zkserver *server)
{
    run(server, "rm -rf saved && cp -a data0 saved");
}

void zkserver_restore(const struct zkserver *server)
{
    run(server, "rm -rf data0 && cp -a saved data0");
}

void zkserver_end(struct zkserver *server)
{
    for (int i = 0; i < server->count; i++) {
        if (server->pids[i])
            zkserver_kill(server, i);
    }
    keeper_remove_folder(server->folder);
    free(server);
}
