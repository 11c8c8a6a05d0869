/* SPDX-License-Identifier: BSD-2-Clause */
/* The mutexattr rows of POSIX, and the attributes that POSIX does not have. Without a server. */
#include <limits.h>
#include <sched.h>
#include <string.h>

#include "../lib/testlib.h"

/* An attribute with a value of type int. */
struct choice {
    const char *name;
    int (*set)(dmutexattr_t *, int);
    int (*get)(const dmutexattr_t *, int *);
    int first;   /* the default */
    int good[5]; /* possible values, ended by -1 */
    int bad[6];  /* impossible values, ended by 0 */
    int bad_result;
};

static const struct choice choices[] = {
    { "type",
      dmutexattr_settype,
      dmutexattr_gettype,
      PTHREAD_MUTEX_DEFAULT,
      { PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ADAPTIVE_NP, PTHREAD_MUTEX_ERRORCHECK, -1 },
      { -1, 4, 255, 256, 0 },
      EINVAL },
    { "robust",
      dmutexattr_setrobust,
      dmutexattr_getrobust,
      PTHREAD_MUTEX_STALLED,
      { PTHREAD_MUTEX_STALLED, PTHREAD_MUTEX_ROBUST, -1 },
      { -1, 2, INT_MAX, INT_MIN, 0 },
      EINVAL },
    { "pshared",
      dmutexattr_setpshared,
      dmutexattr_getpshared,
      PTHREAD_PROCESS_PRIVATE,
      { PTHREAD_PROCESS_SHARED, PTHREAD_PROCESS_PRIVATE, -1 },
      { -1, 2, 256, 257, 0 },
      EINVAL },
    { "protocol",
      dmutexattr_setprotocol,
      dmutexattr_getprotocol,
      PTHREAD_PRIO_NONE,
      { PTHREAD_PRIO_INHERIT, PTHREAD_PRIO_PROTECT, PTHREAD_PRIO_NONE, -1 },
      { -1, 3, 99, 0 },
      EINVAL },
    { "fairness",
      dmutexattr_setfairness_np,
      dmutexattr_getfairness_np,
      DMUTEX_THROUGHPUT_NP,
      { DMUTEX_FAIR_NP, DMUTEX_THROUGHPUT_NP, -1 },
      { -1, 2, 256, 0 },
      EINVAL },
};
#define CHOICES (sizeof choices / sizeof choices[0])

/* A time in milliseconds. */
struct duration {
    const char *name;
    int (*set)(dmutexattr_t *, unsigned);
    int (*get)(const dmutexattr_t *, unsigned *);
    unsigned first;
    unsigned good[4]; /* ended by 1 */
    unsigned bad[5];  /* ended by 1 */
};

static const struct duration durations[] = {
    { "lease",
      dmutexattr_setlease_np,
      dmutexattr_getlease_np,
      10000,
      { 100, 3600000, 5000, 1 },
      { 0, 99, 3600001, UINT_MAX, 1 } },
    { "maxhold", dmutexattr_setmaxhold_np, dmutexattr_getmaxhold_np, 0, { 0, 300, 86400000, 1 }, { 1 } },
    { "linger", dmutexattr_setlinger_np, dmutexattr_getlinger_np, 0, { 0, 50, 60000, 1 }, { 1 } },
};
#define DURATIONS (sizeof durations / sizeof durations[0])

static int get(const struct choice *choice, const dmutexattr_t *attr)
{
    int value = -77;

    assert_result(choice->get(attr, &value), 0);
    return value;
}

static unsigned get_ms(const struct duration *duration, const dmutexattr_t *attr)
{
    unsigned value = 77;

    assert_result(duration->get(attr, &value), 0);
    return value;
}

/* A fresh object says normal, stalled, private, no protocol, 10 s, for any earlier bytes of the object. */
static void test_attr_has_defaults_when_fresh(void **state)
{
    dmutexattr_t attr;
    char name[8];

    (void)state;
    memset(&attr, 0xa5, sizeof attr);
    assert_result(dmutexattr_init(&attr), 0);
    for (size_t i = 0; i < CHOICES; i++)
        assert_int_equal(get(&choices[i], &attr), choices[i].first);
    for (size_t i = 0; i < DURATIONS; i++)
        assert_int_equal(get_ms(&durations[i], &attr), durations[i].first);
    assert_result(dmutexattr_getname_np(&attr, name, sizeof name), ENOENT);
    assert_result(dmutexattr_destroy(&attr), 0);
}

/* Each possible value is accepted and returned. */
static void test_attr_keeps_value_when_possible(void **state)
{
    dmutexattr_t attr;

    (void)state;
    assert_result(dmutexattr_init(&attr), 0);
    for (size_t i = 0; i < CHOICES; i++) {
        for (const int *value = choices[i].good; *value != -1; value++) {
            assert_result(choices[i].set(&attr, *value), 0);
            assert_int_equal(get(&choices[i], &attr), *value);
        }
    }
    for (size_t i = 0; i < DURATIONS; i++) {
        for (const unsigned *value = durations[i].good; *value != 1; value++) {
            assert_result(durations[i].set(&attr, *value), 0);
            assert_int_equal(get_ms(&durations[i], &attr), *value);
        }
    }
}

/* Each impossible value is refused by the error that POSIX names, and changes nothing. */
static void test_attr_refuses_value_when_impossible(void **state)
{
    dmutexattr_t attr, before;

    (void)state;
    assert_result(dmutexattr_init(&attr), 0);
    before = attr;
    for (size_t i = 0; i < CHOICES; i++) {
        for (const int *value = choices[i].bad; *value != 0; value++)
            assert_result(choices[i].set(&attr, *value), choices[i].bad_result);
    }
    for (size_t i = 0; i < DURATIONS; i++) {
        for (const unsigned *value = durations[i].bad; *value != 1; value++)
            assert_result(durations[i].set(&attr, *value), EINVAL);
    }
    assert_memory_equal(&attr, &before, sizeof attr);
}

/* Every function, on an object that is no attributes object. */
static void check_all_refuse(dmutexattr_t *attr)
{
    int value = 77;
    unsigned ms = 77;
    char name[8] = "before";

    for (size_t i = 0; i < CHOICES; i++) {
        assert_result(choices[i].set(attr, choices[i].good[0]), EINVAL);
        assert_result(choices[i].get(attr, &value), EINVAL);
    }
    for (size_t i = 0; i < DURATIONS; i++) {
        assert_result(durations[i].set(attr, durations[i].good[0]), EINVAL);
        assert_result(durations[i].get(attr, &ms), EINVAL);
    }
    assert_result(dmutexattr_setname_np(attr, "t/x"), EINVAL);
    assert_result(dmutexattr_getname_np(attr, name, sizeof name), EINVAL);
    assert_result(dmutexattr_destroy(attr), EINVAL);
    assert_int_equal(value, 77);
    assert_int_equal(ms, 77);
    assert_string_equal(name, "before");
}

/* An object that was destroyed, never set up, or is NULL is EINVAL to every function. */
static void test_attr_is_refused_when_not_set_up(void **state)
{
    dmutexattr_t attr;

    (void)state;
    check_all_refuse(NULL);
    assert_result(dmutexattr_init(NULL), EINVAL);
    memset(&attr, 0, sizeof attr);
    check_all_refuse(&attr);
    memset(&attr, 0xff, sizeof attr);
    check_all_refuse(&attr);
    assert_result(dmutexattr_init(&attr), 0);
    assert_result(dmutexattr_destroy(&attr), 0);
    check_all_refuse(&attr);
}

/* A destroyed object can be set up again. */
static void test_attr_works_when_set_up_again(void **state)
{
    dmutexattr_t attr;

    (void)state;
    assert_result(dmutexattr_init(&attr), 0);
    assert_result(dmutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE), 0);
    assert_result(dmutexattr_destroy(&attr), 0);
    assert_result(dmutexattr_init(&attr), 0);
    assert_int_equal(get(&choices[0], &attr), PTHREAD_MUTEX_DEFAULT);
}

/* A getter without a place for the answer is refused. */
static void test_attr_getter_refuses_when_answer_is_null(void **state)
{
    dmutexattr_t attr;

    (void)state;
    assert_result(dmutexattr_init(&attr), 0);
    for (size_t i = 0; i < CHOICES; i++)
        assert_result(choices[i].get(&attr, NULL), EINVAL);
    for (size_t i = 0; i < DURATIONS; i++)
        assert_result(durations[i].get(&attr, NULL), EINVAL);
    assert_result(dmutexattr_setname_np(&attr, "t/x"), 0);
    assert_result(dmutexattr_getname_np(&attr, NULL, 99), EINVAL);
}

/* A ceiling is kept as libc keeps a ceiling: a priority of SCHED_FIFO, and the lowest priority before any is set. */
static void test_attr_keeps_prioceiling_when_it_is_a_priority(void **state)
{
    dmutexattr_t attr;
    int ceiling = 77;

    (void)state;
    assert_result(dmutexattr_init(&attr), 0);
    assert_result(dmutexattr_getprioceiling(&attr, &ceiling), 0);
    assert_int_equal(ceiling, sched_get_priority_min(SCHED_FIFO));
    assert_result(dmutexattr_setprioceiling(&attr, 10), 0);
    assert_result(dmutexattr_setprioceiling(&attr, sched_get_priority_max(SCHED_FIFO) + 1), EINVAL);
    assert_result(dmutexattr_setprioceiling(&attr, -1), EINVAL);
    assert_result(dmutexattr_getprioceiling(&attr, &ceiling), 0);
    assert_int_equal(ceiling, 10);
    assert_result(dmutexattr_setprioceiling(NULL, 1), EINVAL);
    assert_result(dmutexattr_getprioceiling(&attr, NULL), EINVAL);
}

/* Threads of different hosts have no common priorities: init says so, and leaves the object unchanged. */
static void test_init_refuses_protocol_when_the_mutex_is_of_the_server(void **state)
{
    const int protocols[] = { PTHREAD_PRIO_INHERIT, PTHREAD_PRIO_PROTECT };
    dmutex_t mutex, before;
    dmutexattr_t attr;

    (void)state;
    memset(&mutex, 0x5a, sizeof mutex);
    before = mutex;
    for (int i = 0; i < 2; i++) {
        assert_result(dmutexattr_init(&attr), 0);
        assert_result(dmutexattr_setprotocol(&attr, protocols[i]), 0);
        assert_result(dmutex_init_np(&mutex, "t/x", &attr), ENOTSUP);
        assert_result(dmutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED), 0);
        assert_result(dmutex_init(&mutex, &attr), ENOTSUP);
    }
    assert_memory_equal(&mutex, &before, sizeof mutex);
}

/* A name is kept, replaced and taken away; a bad name changes nothing. */
static void test_attr_name_is_kept_until_replaced(void **state)
{
    const char *const bad[] = { "", "/", "/x", "x/" };
    char longest[DMUTEX_NAME_MAX_NP + 2], name[DMUTEX_NAME_MAX_NP + 1];
    dmutexattr_t attr;

    (void)state;
    memset(longest, 'n', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    assert_result(dmutexattr_init(&attr), 0);
    assert_result(dmutexattr_setname_np(&attr, "billing/ledger"), 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_result(dmutexattr_setname_np(&attr, bad[i]), EINVAL);
    assert_result(dmutexattr_setname_np(&attr, longest), EINVAL);
    assert_result(dmutexattr_getname_np(&attr, name, sizeof name), 0);
    assert_string_equal(name, "billing/ledger");

    longest[DMUTEX_NAME_MAX_NP] = '\0';
    assert_result(dmutexattr_setname_np(&attr, longest), 0);
    assert_result(dmutexattr_getname_np(&attr, name, sizeof name), 0);
    assert_string_equal(name, longest);
    assert_result(dmutexattr_setname_np(&attr, NULL), 0);
    assert_result(dmutexattr_getname_np(&attr, name, sizeof name), ENOENT);
}

/* A buffer without room for the name and the NUL is ERANGE, and untouched. */
static void test_attr_name_needs_room_when_read(void **state)
{
    char name[5] = "...";
    dmutexattr_t attr;

    (void)state;
    assert_result(dmutexattr_init(&attr), 0);
    assert_result(dmutexattr_setname_np(&attr, "a/bc"), 0);
    assert_result(dmutexattr_getname_np(&attr, name, 0), ERANGE);
    assert_result(dmutexattr_getname_np(&attr, name, 4), ERANGE);
    assert_string_equal(name, "...");
    assert_result(dmutexattr_getname_np(&attr, name, 5), 0);
    assert_string_equal(name, "a/bc");
}

/* init of a mutex refuses attributes that dmutexattr_init() has not set up, and leaves the object unchanged. */
static void test_init_refuses_attr_when_not_set_up(void **state)
{
    dmutex_t mutex, before;
    dmutexattr_t attr;

    (void)state;
    memset(&mutex, 0x5a, sizeof mutex);
    before = mutex;
    memset(&attr, 0, sizeof attr);
    assert_result(dmutex_init(&mutex, &attr), EINVAL);
    assert_result(dmutex_init_np(&mutex, "t/x", &attr), EINVAL);
    assert_result(dmutexattr_init(&attr), 0);
    assert_result(dmutexattr_destroy(&attr), 0);
    assert_result(dmutex_init(&mutex, &attr), EINVAL);
    assert_memory_equal(&mutex, &before, sizeof mutex);
}

/* POSIX: a sentence for every failure, none before any (extension). */
static void test_strerror_has_a_sentence_when_a_call_failed(void **state)
{
    (void)state;
    assert_result(dmutexattr_init(NULL), EINVAL);
    assert_true(strlen(dmutex_strerror_np()) > 10);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attr_has_defaults_when_fresh),
        cmocka_unit_test(test_attr_keeps_value_when_possible),
        cmocka_unit_test(test_attr_refuses_value_when_impossible),
        cmocka_unit_test(test_attr_is_refused_when_not_set_up),
        cmocka_unit_test(test_attr_works_when_set_up_again),
        cmocka_unit_test(test_attr_getter_refuses_when_answer_is_null),
        cmocka_unit_test(test_attr_keeps_prioceiling_when_it_is_a_priority),
        cmocka_unit_test(test_init_refuses_protocol_when_the_mutex_is_of_the_server),
        cmocka_unit_test(test_attr_name_is_kept_until_replaced),
        cmocka_unit_test(test_attr_name_needs_room_when_read),
        cmocka_unit_test(test_init_refuses_attr_when_not_set_up),
        cmocka_unit_test(test_strerror_has_a_sentence_when_a_call_failed),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
