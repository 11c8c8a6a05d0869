/* SPDX-License-Identifier: BSD-2-Clause */
/* A server that speaks MariaDB's protocol, and answers what was not asked: too little, too much, or nothing. */
#include "../lib/testlib.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "asker.h"
#include "base/bytes.h"
#include "config.h"
#include "stores/mariadb/open.h"

#define FLOOD_MOST ((size_t)512 * 1024 * 1024)
#define FLOOD_TAKEN ((size_t)160 * 1024 * 1024) /* with what the socket holds */
#define COLUMNS_MOST 5

/* What is said to statements that begin so; rows end with the first NULL, and values of "-" are NULL. */
struct said {
    const char *begin;
    int columns;
    const char *rows[3][COLUMNS_MOST];
};

static const struct said all[] = {
    { "SELECT @@", 5, { { "1", "0", "1", "16777216", "MIXED" } } },
    { "SHOW VARIABLES", 2, { { "server_uid", "here" } } },
    { "SHOW STATUS", 2, { { NULL } } },
    { "SELECT t.TABLE_NAME",
      3,
      { { "dmutex_registers", "InnoDB", "5" }, { "dmutex_epoch", "InnoDB", "0" }, { "dmutex_start", "MEMORY", "0" } } },
    { "SELECT id", 1, { { "0123456789abcdef" } } },
    { "SELECT r.version", 5, { { "-", "-", "-", "-", "1700000000000000" } } },
    { "SELECT version", 5, { { "version of 24 characters", "value", "1", "1", "2" } } },
    { "SELECT COUNT(", 1, { { "3" } } },
    { "SELECT name", 1, { { NULL } } },
};

/* The statement to whose beginning the server says something else. */
static const char *narrow, *flooded, *unanswered;
static size_t flood; /* bytes, atomic */
static int listener;
static char folder[32], url[128];

/* ---- the server -------------------------------------------------------------------------- */

static bool begins(const char *statement, const char *begin)
{
    return begin && strncmp(statement, begin, strlen(begin)) == 0;
}

static void add_packet(struct dm_bytes *out, int *number, const void *content, size_t size)
{
    const uint8_t head[4] = { (uint8_t)size, (uint8_t)(size >> 8), (uint8_t)(size >> 16), (uint8_t)(*number)++ };

    dm_bytes_add(out, head, sizeof head);
    dm_bytes_add(out, content, size);
}

static void add_text(struct dm_bytes *packet, const char *text)
{
    uint8_t length = (uint8_t)strlen(text);

    dm_bytes_add(packet, &length, 1);
    dm_bytes_add(packet, text, length);
}

static void add_end(struct dm_bytes *out, int *number, bool is_last)
{
    const uint8_t end[] = { 0xfe, 0, 0, is_last ? 2 : 10, 0 };

    add_packet(out, number, end, sizeof end);
}

static void add_columns(struct dm_bytes *out, int *number, int columns)
{
    static const uint8_t kind[] = { 12, 33, 0, 255, 0, 0, 0, 253, 0, 0, 0, 0, 0 };
    uint8_t count = (uint8_t)columns;
    struct dm_bytes packet = { 0 };

    add_packet(out, number, &count, 1);
    add_text(&packet, "def");
    for (int i = 0; i < 5; i++)
        add_text(&packet, "x");
    dm_bytes_add(&packet, kind, sizeof kind);
    for (int i = 0; i < columns; i++)
        add_packet(out, number, packet.at, packet.size);
    dm_bytes_free(&packet);
    add_end(out, number, true);
}

static void add_row(struct dm_bytes *out, int *number, const char *const *values, int columns)
{
    static const uint8_t null = 0xfb;
    struct dm_bytes packet = { 0 };

    for (int i = 0; i < columns; i++) {
        if (strcmp(values[i], "-") == 0)
            dm_bytes_add(&packet, &null, 1);
        else
            add_text(&packet, values[i]);
    }
    add_packet(out, number, packet.at, packet.size);
    dm_bytes_free(&packet);
}

static void send_all(int fd, struct dm_bytes *out)
{
    if (send(fd, out->at, out->size, MSG_NOSIGNAL) != (ssize_t)out->size)
        shutdown(fd, SHUT_RDWR);
    dm_bytes_free(out);
}

/* Rows until nobody takes them. */
static void send_flood(int fd, int number)
{
    const char *const row[] = { "1", "0", "1", "16777216", "MIXED" };
    struct dm_bytes rows = { 0 };
    int last = number + 256 * 16;

    while (number < last)
        add_row(&rows, &number, row, 5);
    while (flood < FLOOD_MOST && send(fd, rows.at, rows.size, MSG_NOSIGNAL) == (ssize_t)rows.size)
        __atomic_add_fetch(&flood, rows.size, __ATOMIC_RELAXED);
    shutdown(fd, SHUT_RDWR);
    dm_bytes_free(&rows);
}

static void add_answer(int fd, struct dm_bytes *out, int *number, const char *statement, bool is_last)
{
    const uint8_t done[] = { 0, 1, 0, is_last ? 2 : 10, 0, 0, 0 };

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        int columns = begins(statement, narrow) ? 1 : all[i].columns;

        if (!begins(statement, all[i].begin))
            continue;
        add_columns(out, number, columns);
        if (begins(statement, flooded)) {
            send_all(fd, out);
            send_flood(fd, *number);
        }
        for (int r = 0; r < 3 && all[i].rows[r][0]; r++)
            add_row(out, number, all[i].rows[r], columns);
        add_end(out, number, is_last);
        return;
    }
    add_packet(out, number, done, sizeof done);
}

/* False at the end of the connection. */
static bool receive(int fd, char *ret_text, size_t room)
{
    uint8_t head[4];
    size_t size;

    if (recv(fd, head, sizeof head, MSG_WAITALL) != sizeof head)
        return false;
    size = (size_t)(head[0] | head[1] << 8 | head[2] << 16);
    if (size >= room || recv(fd, ret_text, size, MSG_WAITALL) != (ssize_t)size)
        return false;
    ret_text[size] = '\0';
    return true;
}

static void greet(int fd)
{
    static const char greeting[] = "\x0a"
                                   "5.5.5-10.11.6-MariaDB\0\x07\0\0\0"
                                   "12345678\0"
                                   "\x0b\xa2\x21\x02\0\x0f\0\x15"
                                   "\0\0\0\0\0\0\0\0\0\0"
                                   "123456789012\0mysql_native_password";
    static const uint8_t done[] = { 0, 0, 0, 2, 0, 0, 0 };
    struct dm_bytes out = { 0 };
    char login[1024];
    int number = 0;

    add_packet(&out, &number, greeting, sizeof greeting);
    send_all(fd, &out);
    receive(fd, login, sizeof login);
    number = 2;
    add_packet(&out, &number, done, sizeof done);
    send_all(fd, &out);
}

static void serve(int fd)
{
    static char text[65536];
    struct dm_bytes out = { 0 };
    char *rest, *statement;
    int number;

    greet(fd);
    while (receive(fd, text, sizeof text) && text[0] == 3) {
        number = 1;
        rest = NULL;
        for (statement = strtok_r(text + 1, ";", &rest); statement && !begins(statement, unanswered);) {
            char *next = strtok_r(NULL, ";", &rest);

            add_answer(fd, &out, &number, statement, !next);
            statement = next;
        }
        if (!statement)
            send_all(fd, &out);
    }
    dm_bytes_free(&out);
    close(fd);
}

static void *run_server(void *user)
{
    int fd;

    while ((fd = accept(listener, NULL, NULL)) >= 0)
        serve(fd);
    return user;
}

/* ---- the tests --------------------------------------------------------------------------- */

/* Drivers keep their URLs. */
static struct dm_reg_driver *open_mariadb(const char *version, const struct dm_reg_place *place,
                                          const struct dm_reg_client *client, char ret_reason[DM_REASON_ROOM])
{
    struct dm_url *parsed = dm_url_parse(place->url, ret_reason);

    if (!parsed)
        fail_msg("%s", ret_reason);
    parsed->command_timeout_ms = place->command_timeout_ms;
    return dm_mariadb_open(version, parsed, client, ret_reason);
}

static void assert_goes_down(const char *begin)
{
    struct asker *asker = asker_open(url, "dmutex", 0);
    struct dm_reg_item item = { .key = "n/x" };

    narrow = begin;
    asker->driver->ops->want(asker->driver);
    asker_until(asker, asker->ready || asker->down);
    if (asker->ready)
        asker_post(asker, &item, 1, false);
    asker_until(asker, asker->down);
    narrow = NULL;
    asker_end(asker);
}

/* Results with fewer columns than were asked for end the connection */
static void test_results_with_too_few_columns_are_refused(void **state)
{
    struct dm_reg_item item = { .key = "n/x", .reserves = true };
    struct asker *asker = asker_start(url, NULL);

    (void)state;
    narrow = "SELECT version"; /* then nothing is reserved */
    asker_post(asker, &item, 1, false);
    asker_until(asker, asker->answered == 1);
    assert_outcome(&asker->asked[0], DM_REG_DONE);
    assert_false(asker->asked[0].reply.is_reserved);
    asker_end(asker);
    assert_goes_down("SELECT r.version");
    assert_goes_down("SELECT @@");
    assert_goes_down("SELECT t.TABLE_NAME");
}

/* An answer without end takes neither all memory nor a turn for ever */
static void test_answer_without_end_is_cut_off(void **state)
{
    struct asker *asker = asker_open(url, "dmutex", 0);

    (void)state;
    flooded = "SELECT @@";
    asker->driver->ops->want(asker->driver);
    asker_until(asker, asker->down);
    if (!strstr(asker->reason, "answer without end"))
        fail_msg("%s, after %zu bytes", asker->reason, flood);
    assert_within((int64_t)__atomic_load_n(&flood, __ATOMIC_RELAXED), 1, (int64_t)FLOOD_TAKEN);
    flooded = NULL;
    asker_end(asker);
}

static void count_findings(void *user, int grade, const char *check, const char *text, const char *advice)
{
    (void)check;
    (void)text;
    (void)advice;
    *(int *)user += grade != DM_MARIA_OK;
}

/* A server that says nothing more holds up dmutex doctor for command_timeout */
static void test_doctor_does_not_wait_for_ever(void **state)
{
    char reason[DM_REASON_ROOM], text[192];
    int count = 0;
    const struct dm_maria_report report = { &count, count_findings };
    struct dm_maria_facts facts = { 0 };
    struct dm_url *parsed;

    (void)state;
    snprintf(text, sizeof text, "%s&command_timeout=1000", url);
    parsed = dm_url_parse(text, reason);
    assert_non_null(parsed);
    unanswered = "SELECT COUNT(";
    alarm(WAIT_LIMIT_MS / 1000);
    assert_int_equal(dm_mariadb_examine(PACKAGE_VERSION, parsed, &report, &facts), DM_MARIA_EXAMINED);
    alarm(0);
    unanswered = NULL;
    assert_true(count > 0);
    dm_url_free(parsed);
}

static int setup(void **state)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    pthread_t thread;

    (void)state;
    keeper_make_folder(folder, sizeof folder);
    snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", folder);
    snprintf(url, sizeof url, "mariadb://app:secret@/locks?socket=%s/socket", folder);
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_return_code(bind(listener, (struct sockaddr *)&address, sizeof address), errno);
    assert_return_code(listen(listener, 5), errno);
    assert_int_equal(pthread_create(&thread, NULL, run_server, NULL), 0);
    return pthread_detach(thread);
}

static int teardown(void **state)
{
    (void)state;
    keeper_remove_folder(folder);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_results_with_too_few_columns_are_refused),
        cmocka_unit_test(test_answer_without_end_is_cut_off),
        cmocka_unit_test(test_doctor_does_not_wait_for_ever),
    };

    test_begin(argc, argv);
    asker_driver = open_mariadb;
    return cmocka_run_group_tests(tests, setup, teardown);
}
