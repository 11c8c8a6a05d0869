/* SPDX-License-Identifier: BSD-2-Clause */
#include "late.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "keeper.h"
#include "wait.h"

#define NAP_MS 5
#define LOOKS_AT_LEAST 10
#define LOOKS_OF_A_WINDOW 400 /* two seconds */

static bool nap(int fd)
{
    struct pollfd end = { .fd = fd, .events = POLLIN };
    int result = poll(&end, 1, NAP_MS);

    return result == 0 || (result < 0 && errno == EINTR);
}

static void note(struct late *late, int64_t late_us)
{
    if (late->looks % LOOKS_OF_A_WINDOW == 0) {
        __atomic_store_n(&late->worst_us[1], late->worst_us[0], __ATOMIC_RELAXED);
        __atomic_store_n(&late->worst_us[0], 0, __ATOMIC_RELAXED);
    }
    if (late_us > late->worst_us[0])
        __atomic_store_n(&late->worst_us[0], late_us, __ATOMIC_RELAXED);
    __atomic_store_n(&late->looks, late->looks + 1, __ATOMIC_RELEASE);
}

void late_watch(struct late *late, int fd)
{
    int64_t before_us = wait_now_us();

    while (nap(fd)) {
        int64_t now_us = wait_now_us();

        note(late, now_us - before_us - NAP_MS * 1000);
        before_us = now_us;
    }
}

int late_stretched_ms(int ms)
{
    struct late *late = keeper_late();
    int64_t worst_us, before_us;

    wait_until(__atomic_load_n(&late->looks, __ATOMIC_ACQUIRE) >= LOOKS_AT_LEAST);
    worst_us = __atomic_load_n(&late->worst_us[0], __ATOMIC_RELAXED);
    before_us = __atomic_load_n(&late->worst_us[1], __ATOMIC_RELAXED);
    if (before_us > worst_us)
        worst_us = before_us;
    return ms + (int)(worst_us / 100);
}
