/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Read-write locks, such as those of std::shared_mutex, are not distributed. A rule that names one has no effect. The
 * module says so at the first use, because only the called function distinguishes it from a mutex.
 */
#include <pthread.h>
#include <time.h>

#include "module/base/real.h"
#include "module/names/lookup.h"
#include "shared/text.h"

static void look(const pthread_rwlock_t *lock)
{
    struct object *object = object_of_mutex((const pthread_mutex_t *)(const void *)lock);

    if (object && !__atomic_exchange_n(&object->is_explained, true, __ATOMIC_RELAXED))
        text_say(object->name,
                 ": is a read-write lock, which is not distributed: it stays local, and the rule has no "
                 "effect",
                 NULL);
}

#define DEFINE(name, parameters, arguments)         \
    EXPORT int pthread_rwlock_##name parameters     \
    {                                               \
        look(lock);                                 \
        return real_get()->rwlock_##name arguments; \
    }

DEFINE(rdlock, (pthread_rwlock_t * lock), (lock))
DEFINE(wrlock, (pthread_rwlock_t * lock), (lock))
DEFINE(tryrdlock, (pthread_rwlock_t * lock), (lock))
DEFINE(trywrlock, (pthread_rwlock_t * lock), (lock))
DEFINE(timedrdlock, (pthread_rwlock_t *restrict lock, const struct timespec *restrict until), (lock, until))
DEFINE(timedwrlock, (pthread_rwlock_t *restrict lock, const struct timespec *restrict until), (lock, until))
DEFINE(clockrdlock, (pthread_rwlock_t *restrict lock, clockid_t id, const struct timespec *restrict until),
       (lock, id, until))
DEFINE(clockwrlock, (pthread_rwlock_t *restrict lock, clockid_t id, const struct timespec *restrict until),
       (lock, id, until))
