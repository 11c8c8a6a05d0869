/* SPDX-License-Identifier: BSD-2-Clause */
/* pthread_mutexattr_*(). */
#include "shalls.h"

/* The value of an attribute by the getter. */
typedef int (*getter)(const pthread_mutexattr_t *attr, int *value);
typedef int (*setter)(pthread_mutexattr_t *attr, int value);

static int get_type(const pthread_mutexattr_t *attr, int *value)
{
    return pthread_mutexattr_gettype(attr, value);
}

static int set_type(pthread_mutexattr_t *attr, int value)
{
    return pthread_mutexattr_settype(attr, value);
}

static int get_robust(const pthread_mutexattr_t *attr, int *value)
{
    return pthread_mutexattr_getrobust(attr, value);
}

static int set_robust(pthread_mutexattr_t *attr, int value)
{
    return pthread_mutexattr_setrobust(attr, value);
}

static int get_pshared(const pthread_mutexattr_t *attr, int *value)
{
    return pthread_mutexattr_getpshared(attr, value);
}

static int set_pshared(pthread_mutexattr_t *attr, int value)
{
    return pthread_mutexattr_setpshared(attr, value);
}

static int get_protocol(const pthread_mutexattr_t *attr, int *value)
{
    return pthread_mutexattr_getprotocol(attr, value);
}

static int set_protocol(pthread_mutexattr_t *attr, int value)
{
    return pthread_mutexattr_setprotocol(attr, value);
}

/* An attribute with a list of values, ended by -1. */
struct attribute {
    getter get;
    setter set;
    int standard; /* the default by POSIX */
    int values[5];
};
static const struct attribute type = { get_type,
                                       set_type,
                                       PTHREAD_MUTEX_DEFAULT,
                                       { PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK,
                                         PTHREAD_MUTEX_DEFAULT, -1 } };
static const struct attribute robust = {
    get_robust, set_robust, PTHREAD_MUTEX_STALLED, { PTHREAD_MUTEX_ROBUST, PTHREAD_MUTEX_STALLED, -1 }
};
static const struct attribute pshared = {
    get_pshared, set_pshared, PTHREAD_PROCESS_PRIVATE, { PTHREAD_PROCESS_SHARED, PTHREAD_PROCESS_PRIVATE, -1 }
};
static const struct attribute protocol = { get_protocol, set_protocol, PTHREAD_PRIO_NONE, { PTHREAD_PRIO_NONE, -1 } };

/* A new object has the default value. */
static void say_default(const struct attribute *attribute)
{
    pthread_mutexattr_t attr;
    int value = 4711;

    say("init", pthread_mutexattr_init(&attr));
    say("get", attribute->get(&attr, &value));
    say_whether("default", value == attribute->standard);
}

/* A value that was set is returned. */
static void say_values(const struct attribute *attribute)
{
    pthread_mutexattr_t attr;

    pthread_mutexattr_init(&attr);
    for (const int *value = attribute->values; *value != -1; value++) {
        int told = 4711;

        say("set", attribute->set(&attr, *value));
        say("get", attribute->get(&attr, &told));
        say_whether("told", told == *value);
    }
}

/* A bad value is refused, and the old value stays. */
static void say_bad(const struct attribute *attribute)
{
    pthread_mutexattr_t attr;
    int told = 4711;

    pthread_mutexattr_init(&attr);
    attribute->set(&attr, attribute->values[0]);
    say("set-77", attribute->set(&attr, 77));
    say("set-minus-1", attribute->set(&attr, -1));
    attribute->get(&attr, &told);
    say_whether("unchanged", told == attribute->values[0]);
}

static void type_default(void)
{
    say_default(&type);
}

static void type_values(void)
{
    say_values(&type);
}

static void type_bad(void)
{
    say_bad(&type);
}

static void robust_default(void)
{
    say_default(&robust);
}

static void robust_values(void)
{
    say_values(&robust);
}

static void robust_bad(void)
{
    say_bad(&robust);
}

static void pshared_default(void)
{
    say_default(&pshared);
}

static void pshared_values(void)
{
    say_values(&pshared);
}

static void pshared_bad(void)
{
    say_bad(&pshared);
}

static void protocol_default(void)
{
    say_default(&protocol);
}

static void protocol_values(void)
{
    say_values(&protocol);
}

/* An unknown protocol is refused with ENOTSUP or EINVAL. */
static void protocol_bad(void)
{
    pthread_mutexattr_t attr;
    int told = 4711, result;

    pthread_mutexattr_init(&attr);
    result = pthread_mutexattr_setprotocol(&attr, 77);
    say_whether("refused", result == EINVAL || result == ENOTSUP);
    pthread_mutexattr_getprotocol(&attr, &told);
    say_whether("unchanged", told == PTHREAD_PRIO_NONE);
}

static void set_priority_protocol(int value)
{
    pthread_mutexattr_t attr;
    int told = 4711;

    pthread_mutexattr_init(&attr);
    say("set", pthread_mutexattr_setprotocol(&attr, value));
    pthread_mutexattr_getprotocol(&attr, &told);
    say_whether("none", told == PTHREAD_PRIO_NONE);
}

static void protocol_inherit(void)
{
    set_priority_protocol(PTHREAD_PRIO_INHERIT);
}

static void protocol_protect(void)
{
    set_priority_protocol(PTHREAD_PRIO_PROTECT);
}

static void prioceiling_bad(void)
{
    pthread_mutexattr_t attr;

    pthread_mutexattr_init(&attr);
    say("set", pthread_mutexattr_setprioceiling(&attr, 4711));
    say("set", pthread_mutexattr_setprioceiling(&attr, -1));
}

static void prioceiling(void)
{
    pthread_mutexattr_t attr;
    int told = 4711;

    pthread_mutexattr_init(&attr);
    say("set", pthread_mutexattr_setprioceiling(&attr, 10));
    say("get", pthread_mutexattr_getprioceiling(&attr, &told));
    say_number("ceiling", told);
}

static void init_after_destroy(void)
{
    pthread_mutexattr_t attr;
    int told = 4711;

    say("init", pthread_mutexattr_init(&attr));
    say("set", pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE));
    say("destroy", pthread_mutexattr_destroy(&attr));
    say("init", pthread_mutexattr_init(&attr));
    say("get", pthread_mutexattr_gettype(&attr, &told));
    say_whether("default", told == PTHREAD_MUTEX_DEFAULT);
}

/* Each attribute is set without a change of the others. */
static void independent(void)
{
    pthread_mutexattr_t attr;
    int a = 0, b = 0, c = 0, d = 0;

    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_NONE);
    pthread_mutexattr_gettype(&attr, &a);
    pthread_mutexattr_getrobust(&attr, &b);
    pthread_mutexattr_getpshared(&attr, &c);
    pthread_mutexattr_getprotocol(&attr, &d);
    say_whether("type", a == PTHREAD_MUTEX_ERRORCHECK);
    say_whether("robust", b == PTHREAD_MUTEX_ROBUST);
    say_whether("pshared", c == PTHREAD_PROCESS_SHARED);
    say_whether("protocol", d == PTHREAD_PRIO_NONE);
}

static void robust_private(void)
{
    pthread_mutexattr_t attr;
    pthread_mutex_t mutex;

    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_PRIVATE);
    say("init", pthread_mutex_init(&mutex, &attr));
    say("lock", pthread_mutex_lock(&mutex));
    say("unlock", pthread_mutex_unlock(&mutex));
}

const struct clause mutexattr_clauses[] = {
    { "2.2-init-destroy", "a destroyed object can be set up anew", init_after_destroy },
    { "2.2-type-default", "of a new object", type_default },
    { "2.2-type-values", "each is told", type_values },
    { "2.2-type-bad", "is refused", type_bad },
    { "2.2-robust-default", "of a new object", robust_default },
    { "2.2-robust-values", "each is told", robust_values },
    { "2.2-robust-bad", "is refused", robust_bad },
    { "2.2-robust-private", "robust without process-shared", robust_private },
    { "2.2-pshared-default", "of a new object", pshared_default },
    { "2.2-pshared-values", "each is told", pshared_values },
    { "2.2-pshared-bad", "is refused", pshared_bad },
    { "2.2-protocol-default", "of a new object", protocol_default },
    { "2.2-protocol-none", "is told", protocol_values },
    { "2.2-protocol-bad", "is refused", protocol_bad },
    { "2.2-protocol-inherit", "PTHREAD_PRIO_INHERIT", protocol_inherit },
    { "2.2-protocol-protect", "PTHREAD_PRIO_PROTECT", protocol_protect },
    { "2.2-prioceiling-bad", "out of range", prioceiling_bad },
    { "2.2-prioceiling", "within the range", prioceiling },
    { "2.2-independent", "attributes do not touch each other", independent },
    { NULL, NULL, NULL },
};
