/* SPDX-License-Identifier: BSD-2-Clause */
#include "registers/errand.h"

#include <string.h>

#include "base/minmax.h"
#include "base/units.h"

/* A request without an answer is repeated after so many round trips, and no sooner than this. */
#define RETRY_ROUND_TRIPS 2
#define RETRY_MIN_NS (10 * DM_NS_PER_MS)

/* Of so many swaps that are refused while nobody waits, one is followed by a pause. */
#define REFUSED_A_PAUSE 4

/* Others need up to two swaps more to get in, and the second is on its way when we would join (V9). */
#define YIELD_ROUND_TRIPS 2

void dm_reg_errand_init(struct dm_reg_errand *errand, const struct dm_reg_copy *copy, bool may_pause, bool must_read)
{
    memset(errand, 0, sizeof *errand);
    errand->may_pause = may_pause;
    errand->due_ns = may_pause ? copy->yields_ns : 0;
    errand->want = copy->is_known && !copy->is_old && !must_read ? DM_REG_ERRAND_APPLY : DM_REG_ERRAND_READ;
}

enum dm_reg_errand_want dm_reg_errand_wants(const struct dm_reg_errand *errand, int64_t now_ns)
{
    if (errand->want == DM_REG_ERRAND_SETTLED)
        return DM_REG_ERRAND_SETTLED;
    return errand->is_under_way || now_ns < errand->due_ns ? DM_REG_ERRAND_WAIT : errand->want;
}

bool dm_reg_errand_knocks(const struct dm_reg_errand *errand)
{
    return errand->may_pause && errand->is_next && errand->conflicts > 0;
}

int64_t dm_reg_errand_due_ns(const struct dm_reg_errand *errand)
{
    return errand->is_under_way || errand->want == DM_REG_ERRAND_SETTLED ? DM_NEVER : errand->due_ns;
}

/* N5.  An answer without a swap is about the present, so it needs a read of this errand. */
void dm_reg_errand_applied(struct dm_reg_errand *errand, const struct dm_reg_copy *copy, bool writes, bool is_over)
{
    if (writes || (is_over && copy->is_unsettled))
        errand->want = DM_REG_ERRAND_SWAP;
    else
        errand->want = errand->is_read ? DM_REG_ERRAND_SETTLED : DM_REG_ERRAND_READ;
}

void dm_reg_errand_send(struct dm_reg_errand *errand)
{
    errand->is_under_way = true;
}

/* V6.  After the i-th conflict up to i * i round trips. */
static int64_t pause_ns(const struct dm_reg_errand *errand, bool is_brought, int64_t round_trip_ns, uint64_t random)
{
    int64_t most = dm_min64((int64_t)errand->conflicts * errand->conflicts, DM_REG_PAUSE_MOST) * round_trip_ns;

    if (!errand->may_pause || most <= 0 || (is_brought && errand->is_next && errand->conflicts % REFUSED_A_PAUSE != 0))
        return 0;
    return (int64_t)(random % (uint64_t)(most + 1));
}

/* Somebody who swaps as fast as it can would win again and again; but others wait while the name is reserved. */
static void go_on_at_once(struct dm_reg_errand *errand, struct dm_reg_copy *copy, int64_t now_ns)
{
    errand->conflicts += errand->conflicts < 1000;
    errand->due_ns = now_ns;
    errand->is_read = copy->is_known = true;
    copy->is_old = false;
    errand->want = DM_REG_ERRAND_APPLY;
}

/* A value that came with the refusal is of no use after a pause. */
static void conflict(struct dm_reg_errand *errand, struct dm_reg_copy *copy, bool is_brought, int64_t now_ns,
                     int64_t round_trip_ns, uint64_t random)
{
    errand->conflicts += errand->conflicts < 1000;
    errand->due_ns = now_ns + pause_ns(errand, is_brought, round_trip_ns, random);
    errand->is_read = is_brought;
    copy->is_known = is_brought;
    copy->is_old = false;
    errand->want = is_brought && errand->due_ns == now_ns ? DM_REG_ERRAND_APPLY : DM_REG_ERRAND_READ;
}

/* N5: whoever asks next reads first. */
static void lose_answer(struct dm_reg_errand *errand, struct dm_reg_copy *copy, int64_t now_ns, int64_t round_trip_ns)
{
    if (errand->want == DM_REG_ERRAND_SWAP) {
        copy->is_unsettled = true;
        copy->is_known = false;
    }
    errand->is_read = false;
    errand->due_ns = errand->want == DM_REG_ERRAND_SWAP
                         ? now_ns
                         : now_ns + dm_max64(RETRY_ROUND_TRIPS * round_trip_ns, RETRY_MIN_NS);
    errand->want = DM_REG_ERRAND_READ;
}

void dm_reg_errand_step(struct dm_reg_errand *errand, struct dm_reg_copy *copy, enum dm_reg_errand_event event,
                        int64_t now_ns, int64_t round_trip_ns, uint64_t random)
{
    errand->is_under_way = false;
    switch (event) {
    case DM_REG_ERRAND_EV_KNOCKED:
        copy->yields_ns = now_ns + YIELD_ROUND_TRIPS * round_trip_ns;
        /* fall through */
    case DM_REG_ERRAND_EV_DONE:
        copy->is_known = true;
        copy->is_old = copy->is_unsettled = false;
        errand->want = DM_REG_ERRAND_SETTLED;
        break;
    case DM_REG_ERRAND_EV_READ:
        copy->is_known = true;
        copy->is_old = false;
        errand->is_read = true;
        errand->want = DM_REG_ERRAND_APPLY;
        break;
    case DM_REG_ERRAND_EV_RESERVED:
        go_on_at_once(errand, copy, now_ns);
        break;
    case DM_REG_ERRAND_EV_BROUGHT:
    case DM_REG_ERRAND_EV_CONFLICT:
        conflict(errand, copy, event == DM_REG_ERRAND_EV_BROUGHT, now_ns, round_trip_ns, random);
        break;
    case DM_REG_ERRAND_EV_UNKNOWN:
        lose_answer(errand, copy, now_ns, round_trip_ns);
    }
}

void dm_reg_errand_refused(struct dm_reg_errand *errand, int64_t again_ns)
{
    errand->is_under_way = errand->is_read = false;
    errand->due_ns = again_ns;
    errand->want = DM_REG_ERRAND_READ;
}

void dm_reg_copy_forget(struct dm_reg_copy *copy)
{
    memset(copy, 0, sizeof *copy);
}
