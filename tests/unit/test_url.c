/* SPDX-License-Identifier: BSD-2-Clause */
/* store/url: the parts of a server's URL, the meaning of each part, and the reasons for a refusal. */
#include <ctype.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "config.h"
#include "random.h"
#include "url_parse.h"

#define SECRET "a-password-that-is-wiped"

/* All parts of a redis:// URL are read. */
static void test_url_is_read_when_it_is_tcp(void **state)
{
    static const struct {
        const char *text, *host, *port, *user, *password;
        unsigned db;
    } good[] = {
        { "redis://localhost", "localhost", "6379", NULL, NULL, 0 },
        { "redis://localhost/", "localhost", "6379", NULL, NULL, 0 },
        { "redis://10.0.0.1:7000", "10.0.0.1", "7000", NULL, NULL, 0 },
        { "redis://h:1/0", "h", "1", NULL, NULL, 0 },
        { "redis://h:65535/15", "h", "65535", NULL, NULL, 15 },
        { "redis://:pw@h", "h", "6379", NULL, "pw", 0 },
        { "redis://me@h", "h", "6379", "me", NULL, 0 },
        { "redis://me:pw@h:6380/2", "h", "6380", "me", "pw", 2 },
        { "redis://me:p@w:x@h", "h", "6379", "me", "p@w:x", 0 },
        { "redis://m%40e:p%2Fw%3f%25@h", "h", "6379", "m@e", "p/w?%", 0 },
        { "valkey://me:pw@h:6380/2", "h", "6380", "me", "pw", 2 },
        { "REDIS://H:1", "H", "1", NULL, NULL, 0 },
        { "ValKey://h", "h", "6379", NULL, NULL, 0 },
        { "redis://[::1]", "::1", "6379", NULL, NULL, 0 },
        { "redis://me:pw@[fe80::1]:7001/3", "fe80::1", "7001", "me", "pw", 3 },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        struct dm_url *url = parse(good[i].text);

        assert_int_equal(url->kind, DM_URL_TCP);
        assert_same_text(url->host, good[i].host);
        assert_same_text(url->port, good[i].port);
        assert_same_text(url->user, good[i].user);
        assert_same_text(url->password, good[i].password);
        assert_int_equal(url->db, good[i].db);
        dm_url_free(url);
    }
}

/* unix:// is read with and without a password before the path, and with the longest possible path. */
static void test_url_is_read_when_it_is_a_socket(void **state)
{
    static const struct {
        const char *text, *path, *password;
        unsigned db;
    } good[] = {
        { "unix:///run/redis.sock", "/run/redis.sock", NULL, 0 },
        { "unix:///run/redis.sock?db=3", "/run/redis.sock", NULL, 3 },
        { "unix://:pw@/run/redis.sock", "/run/redis.sock", "pw", 0 },
        { "unix:///a%20b/c%3Fd", "/a b/c?d", NULL, 0 },
        { "unix:///a,b/c", "/a,b/c", NULL, 0 },
        { "unix:///"
          "1234567890123456789012345678901234567890123456789012345678901234567890123456789012345"
          "678901234567890123456",
          "/1234567890123456789012345678901234567890123456789012345678901234567890123456789012345"
          "678901234567890123456",
          NULL, 0 },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        struct dm_url *url = parse(good[i].text);

        assert_int_equal(url->kind, DM_URL_UNIX);
        assert_same_text(url->path, good[i].path);
        assert_same_text(url->password, good[i].password);
        assert_int_equal(url->db, good[i].db);
        dm_url_free(url);
    }
}

/* Options without a value in the URL have the documented defaults. */
static void test_url_has_defaults_when_options_are_not_given(void **state)
{
    struct dm_url *url = parse("local:");

    (void)state;
    assert_int_equal(url->kind, DM_URL_LOCAL);
    assert_string_equal(url->prefix, "dmutex");
    assert_int_equal(url->connect_timeout_ms, 2000);
    assert_int_equal(url->command_timeout_ms, 2000);
    assert_false(url->may_evict);
    dm_url_free(url);
}

/* The timeouts, the prefix and eviction=allow are read on every scheme. */
static void test_url_takes_options_when_given(void **state)
{
    static const char *const schemes[] = { "redis://h", "unix:///s", "local:" };

    (void)state;
    for (size_t i = 0; i < COUNT(schemes); i++) {
        char text[200];
        struct dm_url *url;

        snprintf(text, sizeof text, "%s?connect_timeout=1&command_timeout=3600000&prefix=a.b_c-d&eviction=allow",
                 schemes[i]);
        url = parse(text);
        assert_int_equal(url->connect_timeout_ms, 1);
        assert_int_equal(url->command_timeout_ms, 3600000);
        assert_string_equal(url->prefix, "a.b_c-d");
        assert_true(url->may_evict);
        dm_url_free(url);
    }
}

/* URLs that are refused; each URL leaves a reason of one line. */
static const char *const bad[] = {
    "",
    " ",
    "redis",
    "redis:",
    "redis:/h",
    "http://h",
    "localhost",
    "localhost:6379",
    "valkey:/h",
    "valkeyred://h",
    "valkey-sentinel://h",
    "unix:///s\n",
    "local: ",
    " redis://h",
    "redis://",
    "redis:///0",
    "redis://:6379",
    "redis://h:",
    "redis://h:0",
    "redis://h:65536",
    "redis://h:-1",
    "redis://h:6379x",
    "redis://h:99999999999",
    "redis://h/x",
    "redis://h/-1",
    "redis://h/1/2",
    "redis://h/1000000",
    "redis://h/99999999999999999999",
    "redis://[::1",
    "redis://[::1]x",
    "redis://[]:6379",
    "redis://h%",
    "redis://h%4",
    "redis://h%zz",
    "redis://h%00",
    "redis://a,b",
    "redis://a:1,b:2/0",
    "unix:/s",
    "unix://",
    "unix://s",
    "unix://host/s",
    "unix:///%zz",
    "unix:///a%00b",
    "unix:///"
    "12345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
    "0123456789012345678",
    "local",
    "local:x",
    "local:/tmp",
    "local://",
    "redis://h?x",
    "redis://h?x=1",
    "redis://h?=1",
    "redis://h?db=1",
    "redis://h?&",
    "local:?db=1",
    "redis://h?connect_timeout=0",
    "redis://h?connect_timeout=",
    "redis://h?connect_timeout=3600001",
    "redis://h?connect_timeout=1s",
    "redis://h?command_timeout=-1",
    "redis://h?command_timeout=1.5",
    "redis://h?command_timeout=99999999999999999999",
    "redis://h?prefix=",
    "redis://h?prefix=a:b",
    "redis://h?prefix=a%3Ab",
    "redis://h?prefix=a{b",
    "redis://h?prefix=a%7Bb",
    "redis://h?prefix=a b",
    "redis://h?prefix=a*",
    "redis://h?eviction=",
    "redis://h?eviction=yes",
    "redis://h?prefix=12345678901234567890123456789012345678901234567890123456789012345",
    "redis://h?password_file=",
    "redis://h?password_file=/nonexistent/file",
    "redis://h?connect_timeout=5,command_timeout=6",
    "redis+sentinel://h",
    "redis+cluster://h/0",
    "redis+cluster://a,,b"
};

/* Else a name would be cut somewhere, and lead to another server, or to none again and again. */
static void test_url_is_refused_when_a_host_is_longer_than_any_name(void **state)
{
    static const char *const forms[][2] = {
        { "redis://", "" }, { "redis+sentinel://h,", "/m" }, { "redis+cluster://h,", "" }, { "redis+quorum://h,i,", "" }
    };

    (void)state;
    for (size_t i = 0; i < COUNT(forms); i++) {
        char host[257], text[300], reason[DM_REASON_ROOM];
        struct dm_url *url;

        memset(host, 'a', sizeof host);
        host[255] = '\0';
        snprintf(text, sizeof text, "%s%s%s", forms[i][0], host, forms[i][1]);
        url = dm_url_parse(text, reason);
        assert_non_null(url);
        dm_url_free(url);
        host[255] = 'a';
        host[256] = '\0';
        snprintf(text, sizeof text, "%s%s%s", forms[i][0], host, forms[i][1]);
        assert_null(dm_url_parse(text, reason));
        assert_string_equal(reason, "the host is longer than 255 bytes");
    }
}

/* A bad URL is refused with a sentence of one line. */
static void test_url_is_refused_with_a_reason_when_bad(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        char reason[DM_REASON_ROOM] = "";
        struct dm_url *url = dm_url_parse(bad[i], reason);

        if (url)
            fail_msg("accepted: \"%s\"", bad[i]);
        if (!strchr(reason, ' ') || strpbrk(reason, "\r\n"))
            fail_msg("\"%s\" has the reason \"%s\"", bad[i], reason);
    }
}

/* R8: a line break from a file is reported as such, and not as an invalid port or database. */
static void test_url_is_refused_with_the_reason_when_a_line_break_is_at_its_end(void **state)
{
    static const char *const broken[] = { "redis://h:6379\n", "redis://h/0\r\n", "unix:///s\n", "local:\n",
                                          "redis://h?tls=no\n" };

    (void)state;
    for (size_t i = 0; i < COUNT(broken); i++) {
        char reason[DM_REASON_ROOM];

        assert_null(dm_url_parse(broken[i], reason));
        assert_non_null(strstr(reason, "ends with a blank or a line break"));
    }
}

/* TLS is asked for by scheme or option; what is not said is checked, and the host is the name. */
static void test_url_has_tls_when_the_scheme_or_the_option_says_so(void **state)
{
    static const struct {
        const char *text;
        bool has_tls, is_verified;
        const char *servername, *cacert;
    } good[] = {
        { "redis://h", false, true, NULL, NULL },
        { "redis://h?tls=no", false, true, NULL, NULL },
        { "rediss://h", true, true, NULL, NULL },
        { "valkeys://h", true, true, NULL, NULL },
        { "rediss://me:s@h:1/2?tls=yes", true, true, NULL, NULL },
        { "redis://h?tls=yes&verify=full", true, true, NULL, NULL },
        { "redis://h?cacert=/dev/null&tls=yes", true, true, NULL, "/dev/null" },
        { "rediss://h?verify=none", true, false, NULL, NULL },
        { "unix:///s?tls=yes&servername=a.example", true, true, "a.example", NULL },
        { "unix:///s?tls=yes&verify=none", true, false, NULL, NULL },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(good) && DM_HAVE_TLS; i++) {
        struct dm_url *url = parse(good[i].text);

        assert_int_equal(url->has_tls, good[i].has_tls);
        assert_int_equal(url->is_verified, good[i].is_verified);
        assert_same_text(url->servername, good[i].servername);
        assert_same_text(url->cacert, good[i].cacert);
        dm_url_free(url);
    }
}

/* A setting of TLS that contradicts the rest of the URL, or that nothing would read, is refused with its remedy. */
static void test_url_is_refused_when_tls_cannot_be_as_written(void **state)
{
    static const struct {
        const char *text, *words;
    } odd[] = {
        { "rediss://h?tls=no", "rediss:// always has it" },
        { "redis://h?tls=1", "\"yes\" or \"no\"" },
        { "redis://h?cacert=/dev/null", "write rediss://" },
        { "redis://h?servername=a", "write rediss://" },
        { "unix:///s?verify=none", "write rediss://, or tls=yes" },
        { "rediss://h?verify=peer", "\"full\" or \"none\"" },
        { "rediss://h?key=/dev/null", "add cert" },
        { "rediss://h?cacert=ca.crt", "cacert: it is not an absolute path" },
        { "rediss://h?cert=/nonexistent/crt", "cert \"/nonexistent/crt\": No such file" },
        { "rediss://h?servername=", "servername" },
        { "unix:///s?tls=yes", "servername" },
        { "local:?tls=yes", "local: has no TLS" },
        { "rediss://h?user_file=/nonexistent/user", "user_file \"/nonexistent/user\": No such file" },
    };
    char reason[DM_REASON_ROOM];

    (void)state;
    for (size_t i = 0; i < COUNT(odd) && DM_HAVE_TLS; i++) {
        if (dm_url_parse(odd[i].text, reason))
            fail_msg("accepted: \"%s\"", odd[i].text);
        if (!strstr(reason, odd[i].words))
            fail_msg("\"%s\" has the reason \"%s\"", odd[i].text, reason);
    }
}

/* A build without TLS says so, and how to build the library. */
static void test_url_is_refused_when_the_build_has_no_tls(void **state)
{
    char reason[DM_REASON_ROOM];

    (void)state;
    if (DM_HAVE_TLS)
        return;
    assert_null(dm_url_parse("rediss://h", reason));
    assert_non_null(strstr(reason, "built without TLS"));
    assert_null(dm_url_parse("unix:///s?tls=yes&servername=a", reason));
}

/* A reason never contains a password, whatever the error in the rest of the URL. */
static void test_url_reason_has_no_secret_when_refused(void **state)
{
    static const char *const leaky[] = {
        "redis://me:s3cret@",
        "redis://me:s3cret@:99",
        "redis://me:s3cret@h:0",
        "redis://me:s3cret@h/x",
        "redis://me:s3cret@h?x=1",
        "redis://me:s3cret@h?x",
        "redis://me:s3cret%zz@h",
        "redis://:s3cret@[::1",
        "redis://me:a/s3cret@h",
        "redis://me:a/s3cret@h:1/0",
        "redis://me:a?s3cret@h",
        "redis://:s3cret?a@h",
        "redis://me:a?s3cret=1@h",
        "redis://me:a?x=1&s3cret@h",
        "redis://me:a,s3cret@h",
        "redis://me:a@s3cret@:99",
        "unix://:s3cret@h/s",
        "unix://me:s3cret@",
        "unix://me:s3cret@h",
        "unix://me:a/s3cret@/s",
        "rediss://me:s3cret@h",
        "redis+cluster://me:s3cret@h/0",
        "redis+cluster://me:s3cret@h,",
        "redis+cluster://me:s3cret",
        "redis-cluster://me:s3cret@h",
        "http://me:s3cret@h",
        "me:s3cret@h",
        "://:s3cret@h",
        "local:me:s3cret@h",
        "redis:me:s3cret@h",
        "redis://me:s3cret",
        "redis://:s3cret",
        "redis://me:s3cret/0",
        "redis://me:1/s3cret",
        "redis://me:1?s3cret",
        "redis://me:1?s3cret=1",
        "redis://h?prefix=me:s3cret",
        "redis://h?password_file=s3cret",
        "redis://me:a?password_file=/s3cret@h",
        "redis://h?password_file=%zzs3cret",
        "redis://s3cret%zz",
        "redis://[s3cret",
        "unix://me:s3cret",
        "unix://me:s3cret/run/s",
        "unix:///s3cret%zz",
        "local:s3cret",
        "s3cret",
        "s3cret://h",
        "rediss://me:s3cret",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(leaky); i++) {
        char reason[DM_REASON_ROOM] = "";
        struct dm_url *url = dm_url_parse(leaky[i], reason);

        dm_url_free(url);
        if (strstr(reason, "s3cret"))
            fail_msg("%s tells the secret: %s", leaky[i], reason);
    }
}

/* The description of the server has no secret either, and is cut to the room. */
static void test_url_description_has_no_secret_when_there_is_one(void **state)
{
    struct dm_url *url = parse("redis://me:s3cret@host:7000/2");
    char text[64], small[5];

    (void)state;
    dm_url_describe(url, text, sizeof text);
    assert_string_equal(text, "host:7000");
    dm_url_describe(url, small, sizeof small);
    assert_string_equal(small, "host");
    dm_url_free(url);
    url = parse("unix://:s3cret@/run/s");
    dm_url_describe(url, text, sizeof text);
    assert_string_equal(text, "/run/s");
    dm_url_free(url);
    url = parse("redis://[fd77::1]:7000");
    dm_url_describe(url, text, sizeof text);
    assert_string_equal(text, "[fd77::1]:7000");
    dm_url_free(url);
}

static void write_file(const char *path, const char *content, size_t length)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(content, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

/* The password file's first line is the password, without the line end. */
static void test_url_reads_the_password_file_when_named(void **state)
{
    static const char *const contents[] = { "s3cret", "s3cret\n", "s3cret\r\n", "s3cret\nmore\n" };
    char path[] = "/tmp/test_url.XXXXXX", text[100];
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    snprintf(text, sizeof text, "redis://h?password_file=%s", path);
    for (size_t i = 0; i < COUNT(contents); i++) {
        struct dm_url *url;

        write_file(path, contents[i], strlen(contents[i]));
        url = parse(text);
        assert_string_equal(url->password, "s3cret");
        dm_url_free(url);
    }
    unlink(path);
}

/* ---- functions that the test replaces, with the linker's --wrap -------------------------- */

static bool is_searching; /* in the texts that are freed; a URL's own record has a NUL, too */
static int secrets_freed;

void __real_free(void *memory);
void __wrap_free(void *memory);
void __wrap_free(void *memory)
{
    if (is_searching && memory && strstr(memory, SECRET))
        secrets_freed++;
    __real_free(memory);
}

static bool has_odd_locale; /* in which all bytes above 127 are letters, as in some of one byte a character */

const unsigned short **__real___ctype_b_loc(void);
const unsigned short **__wrap___ctype_b_loc(void);
const unsigned short **__wrap___ctype_b_loc(void)
{
    static unsigned short odd[384];
    static const unsigned short *at = odd + 128;

    if (!has_odd_locale)
        return __real___ctype_b_loc();
    memcpy(odd, *__real___ctype_b_loc() - 128, sizeof odd);
    for (int byte = 128; byte < 256; byte++)
        odd[128 + byte] |= (unsigned short)_ISalnum;
    return &at;
}

/* No password lies in freed memory: not one that a file's password replaced, and not the begin of a bad one. */
static void test_url_leaves_no_password_in_freed_memory(void **state)
{
    char path[] = "/tmp/test_url.XXXXXX", text[100], reason[DM_REASON_ROOM];
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    write_file(path, "other\n", 6);
    is_searching = true;
    dm_url_free(parse("redis://me:" SECRET "@h"));
    snprintf(text, sizeof text, "redis://me:" SECRET "@h?password_file=%s", path);
    dm_url_free(parse(text));
    assert_null(dm_url_parse("redis://me:" SECRET "%zz@h", reason));
    is_searching = false;
    unlink(path);
    assert_int_equal(secrets_freed, 0);
}

/* A prefix is of ASCII in every locale, because all processes must make the same keys of a URL. */
static void test_url_takes_the_same_prefixes_when_the_locale_has_more_letters(void **state)
{
    char reason[DM_REASON_ROOM];
    struct dm_url *url;

    (void)state;
    has_odd_locale = true;
    url = dm_url_parse("redis://h?prefix=caf\xe9", reason);
    has_odd_locale = false;
    assert_null(url);
    assert_non_null(strstr(reason, "prefix"));
}

/* A URL is refused if the password file has an empty first line. */
static void test_url_is_refused_when_the_password_file_is_empty(void **state)
{
    static const char *const contents[] = { "", "\n", "\r\n" };
    char path[] = "/tmp/test_url.XXXXXX", text[100], reason[DM_REASON_ROOM];
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    snprintf(text, sizeof text, "redis://h?password_file=%s", path);
    for (size_t i = 0; i < COUNT(contents); i++) {
        struct dm_url *url;

        write_file(path, contents[i], strlen(contents[i]));
        url = dm_url_parse(text, reason);
        if (url)
            fail_msg("accepted a password file of %d bytes as \"%s\"", (int)strlen(contents[i]), url->password);
        assert_non_null(strstr(reason, "password_file"));
    }
    unlink(path);
}

/* A first line that is too long is not cut, because half a password is useless: the URL is refused. */
static void test_url_is_refused_when_the_password_is_too_long(void **state)
{
    char path[] = "/tmp/test_url.XXXXXX", text[100], reason[DM_REASON_ROOM], content[5000];
    int fd = mkstemp(path);
    struct dm_url *url;

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    memset(content, 'x', sizeof content);
    write_file(path, content, sizeof content);
    snprintf(text, sizeof text, "redis://h?password_file=%s", path);
    url = dm_url_parse(text, reason);
    unlink(path);
    assert_true(!url || strlen(url->password) == sizeof content);
    dm_url_free(url);
}

/* Any text is either a URL or refused with a reason; for the sanitizers. */
static void test_url_is_read_or_refused_when_it_is_random(void **state)
{
    static const char *const beginnings[] = { "redis://", "unix://", "local:", "redis://h?", "redis://[", "" };
    static const char tricky[] = "%/:@?&=[],.-0123456789abcfxyz";
    int texts = rounds(20000);

    (void)state;
    while (texts-- > 0) {
        char text[80], reason[DM_REASON_ROOM] = "";
        int used = snprintf(text, sizeof text, "%s", beginnings[random_below(COUNT(beginnings))]);
        unsigned length = random_below(40);
        struct dm_url *url;

        random_bytes(text + used, length, '\0');
        for (unsigned i = 0; i < length; i++) {
            if (random_below(12))
                text[used + (int)i] = tricky[random_below(sizeof tricky - 1)];
        }
        url = dm_url_parse(text, reason);
        assert_true(url || reason[0]);
        dm_url_free(url);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_url_is_read_when_it_is_tcp),
        cmocka_unit_test(test_url_is_read_when_it_is_a_socket),
        cmocka_unit_test(test_url_has_defaults_when_options_are_not_given),
        cmocka_unit_test(test_url_takes_options_when_given),
        cmocka_unit_test(test_url_is_refused_with_a_reason_when_bad),
        cmocka_unit_test(test_url_is_refused_when_a_host_is_longer_than_any_name),
        cmocka_unit_test(test_url_is_refused_with_the_reason_when_a_line_break_is_at_its_end),
        cmocka_unit_test(test_url_has_tls_when_the_scheme_or_the_option_says_so),
        cmocka_unit_test(test_url_is_refused_when_tls_cannot_be_as_written),
        cmocka_unit_test(test_url_is_refused_when_the_build_has_no_tls),
        cmocka_unit_test(test_url_reason_has_no_secret_when_refused),
        cmocka_unit_test(test_url_description_has_no_secret_when_there_is_one),
        cmocka_unit_test(test_url_reads_the_password_file_when_named),
        cmocka_unit_test(test_url_leaves_no_password_in_freed_memory),
        cmocka_unit_test(test_url_takes_the_same_prefixes_when_the_locale_has_more_letters),
        cmocka_unit_test(test_url_is_refused_when_the_password_file_is_empty),
        cmocka_unit_test(test_url_is_refused_when_the_password_is_too_long),
        cmocka_unit_test(test_url_is_read_or_refused_when_it_is_random),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
