/* SPDX-License-Identifier: BSD-2-Clause */
#include "storm.h"

#include "wait.h"

/*
 * Each connection gets more bytes than a greeting and the repeated requests after it need: one of these may be a
 * script's text.  With fewer bytes no request would ever get through.
 */
#define TO_SERVER_BYTES 32000
#define TO_CLIENT_BYTES 8000

static void cut_later(struct proxy *proxy, unsigned round)
{
    unsigned more = round * 977 % 9000;

    if (round % 2)
        proxy_cut_after(proxy, PROXY_TO_SERVER, TO_SERVER_BYTES + more);
    else
        proxy_cut_after(proxy, PROXY_TO_CLIENT, TO_CLIENT_BYTES + more);
}

void storm_while_counting(struct proxy *proxy, struct actor *one, struct actor *two, const char *file)
{
    struct count_watch watch = { 0, 0 };
    long long at_cut = -1;

    for (unsigned round = 0; actor_is_silent(one) || actor_is_silent(two); round++) {
        cut_later(proxy, round);
        actor_watch_count(&watch, file);
        if (round % 16 == 0 && watch.last > at_cut) {
            at_cut = watch.last;
            proxy_cut(proxy);
        }
        wait_nap();
    }
    proxy_pass(proxy);
}
