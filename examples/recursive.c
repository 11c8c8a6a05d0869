/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recursive locks: functions that lock call functions that lock. Only the outermost lock and unlock talk to the server;
 * the inner ones only count.
 */
#include <stdio.h>
#include <stdlib.h>

#include <dmutex/dmutex.h>

static dmutex_t stock_mutex = DMUTEX_RECURSIVE_INITIALIZER("shop/stock");

static int apples = 10, baskets = 0;

static void lock(void)
{
    if (dmutex_lock(&stock_mutex) != 0) {
        fprintf(stderr, "recursive: %s\n", dmutex_strerror_np());
        exit(1);
    }
}

static unsigned depth(void)
{
    unsigned count = 0;

    dmutex_holdcount_np(&stock_mutex, &count);
    return count;
}

/* Any function may call this one, because it locks by itself. */
static void take_apples(int number)
{
    lock();
    apples -= number;
    printf("depth %u: %d apples are left\n", depth(), apples);
    dmutex_unlock(&stock_mutex);
}

/* Nobody may see this half done, so the function holds the mutex all the time. */
static void fill_basket(void)
{
    lock();
    printf("depth %u: a basket is being filled\n", depth());
    take_apples(2);
    take_apples(1);
    baskets++;
    dmutex_unlock(&stock_mutex);
}

int main(void)
{
    int is_locked = 1;

    fill_basket();
    fill_basket();
    dmutex_islocked_np(&stock_mutex, &is_locked);
    printf("%d baskets, %d apples; %s\n", baskets, apples, is_locked ? "STILL LOCKED" : "unlocked");
    return baskets == 2 && apples == 4 && depth() == 0 && !is_locked ? 0 : 1;
}
