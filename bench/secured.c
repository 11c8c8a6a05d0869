/* SPDX-License-Identifier: BSD-2-Clause */
#include "secured.h"

#include <stdlib.h>

#include "bench.h"
#include "config.h"

#if DM_HAVE_TLS

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

struct secured {
    SSL *ssl;
    redisReader *reader;
};

static int connect_to(int port)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
        bench_die("no connection for TLS");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

struct secured *secured_open(int port)
{
    struct secured *secured = calloc(1, sizeof *secured);
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());

    secured->ssl = context ? SSL_new(context) : NULL;
    secured->reader = redisReaderCreate();
    if (!secured->ssl || !SSL_set_fd(secured->ssl, connect_to(port)) || SSL_connect(secured->ssl) != 1)
        bench_die("no TLS with the server");
    SSL_CTX_free(context);
    return secured;
}

static redisReply *next_reply(struct secured *secured)
{
    void *reply = NULL;
    char bytes[4096];
    int got;

    while (redisReaderGetReply(secured->reader, &reply) == REDIS_OK && !reply) {
        got = SSL_read(secured->ssl, bytes, sizeof bytes);
        if (got <= 0)
            bench_die("the server has gone");
        redisReaderFeed(secured->reader, bytes, (size_t)got);
    }
    return reply;
}

redisReply *secured_command(void *user, int count, const char **words)
{
    struct secured *secured = user;
    redisReply *reply;
    char *text = NULL;
    int length = redisFormatCommandArgv(&text, count, words, NULL);

    if (length < 0 || SSL_write(secured->ssl, text, length) != length)
        bench_die("the server has gone");
    redisFreeCommand(text);
    reply = next_reply(secured);
    if (!reply || reply->type == REDIS_REPLY_ERROR)
        bench_die(reply ? reply->str : "the server has gone");
    return reply;
}

#else

struct secured *secured_open(int port)
{
    (void)port;
    bench_die("the library has no TLS");
}

redisReply *secured_command(void *user, int count, const char **words)
{
    (void)user;
    (void)count;
    (void)words;
    return NULL;
}

#endif
