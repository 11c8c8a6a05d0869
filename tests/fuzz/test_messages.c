/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of the inbox, a line each, to attempts in every phase: no message makes an attempt hold for longer than a
 * lease from now, or makes an ended attempt hold again. Replaces the loop (loop.c).
 */
#include <string.h>

#include "fuzz.h"
#include "process/claims/alarm.h"
#include "process/claims/claim.h"
#include "process/claims/steps.h"
#include "process/keep/inbox.h"
#include "store/drivers.h"
#include "stores/redis/parts.h"

#define RUN "0123456789abcdef"
#define LEASE_MS 600000 /* no pause of the machine ends the lease */

/* The attempts, by their serials. */
enum { ASKING = 1, QUEUED, HELD, WAITING, LEAVING, LOST, OVER };

static const char *const seeds[] = {
    "granted 2 1 1700000000000001 1000 0 " RUN "\nlost 2",
    "granted 4 2 1700000000000001 1000 1 " RUN "\nask 4",
    "signalled 4 1 900\ngranted 4 1 7 1000 0 " RUN,
    "lost 3\nask 3\ngranted 3 1 8 1000 0 " RUN,
    "granted 7 1 9 1000 0 " RUN "\nlost 7",
    "granted 1 1 5 1000 0\ngranted 6 1 5 1000 0 0123456789abcdee",
    "ask 1\nask 5\nlost 5",
    "wanted 3\nlost 3\nwanted 2\nwanted 5\nwanted 7",
    NULL,
};

static const char *const words[] = {
    "granted ",
    "lost ",
    "ask ",
    "wanted ",
    "signalled ",
    "\n",
    " ",
    "1",
    "2",
    "3",
    "4",
    "5",
    "6",
    "7",
    " 1000 0",
    " 1000 0 " RUN,
    " 0 ",
    "-",
    "9007199254740992",
    "9223372036854775807",
    "9999999999999999999",
    "18446744073709551615",
    NULL,
};

const struct fuzzer fuzzer = { "messages", seeds, words, 50000, 4000000 };

static struct dm_runtime runtime;

void dm_alarm_set(struct dm_alarm *alarm, int64_t due_ns)
{
    (void)alarm;
    (void)due_ns;
}

void dm_alarm_ring(struct dm_alarm *alarm)
{
    (void)alarm;
}

/* ---- attempts ---------------------------------------------------------------------------- */

static void tell(struct dm_claim *claim, enum dm_event_kind kind)
{
    dm_step(&runtime, claim, &(struct dm_event){ .kind = kind });
}

static void answer(struct dm_claim *claim, enum dm_verdict verdict)
{
    struct dm_answer said = { .verdict = verdict, .token = 5, .position = 1, .remaining_ms = 100 };

    dm_step(&runtime, claim, &(struct dm_event){ .kind = DM_EV_ANSWER, .request = 1, .answer = &said });
}

static struct dm_claim *claim_by(uint64_t serial)
{
    struct dm_claim *claim = dm_registry_attempt(&runtime.registry, serial);

    must(claim);
    return claim;
}

static void make_claims(void)
{
    struct dm_name *name = dm_registry_name(&runtime.registry, "ng/l");

    must(name);
    runtime.registry.last_serial = 0;
    for (int serial = ASKING; serial <= OVER; serial++) {
        struct dm_claim *claim = dm_registry_claim(&runtime.registry, name, LEASE_MS, 0, serial % 2);

        must(claim && claim->hold.serial == (uint64_t)serial);
        dm_hold_send(&claim->hold, DM_WANTS_ACQUIRE, dm_clock_boot_ns());
        dm_hold_send(&claim->hold, DM_WANTS_NOTHING, dm_clock_boot_ns());
    }
}

static void enter(struct dm_claim *claim)
{
    answer(claim, DM_SAYS_OWNED);
    must(claim->hold.phase == DM_HELD);
    tell(claim, DM_EV_ENTERED);
}

static void begin(void)
{
    make_claims();
    answer(claim_by(QUEUED), DM_SAYS_QUEUED);
    enter(claim_by(HELD));
    dm_registry_set_condition(&runtime.registry, claim_by(WAITING), dm_registry_name(&runtime.registry, "cg/c"));
    answer(claim_by(WAITING), DM_SAYS_WAITING);
    enter(claim_by(LEAVING));
    tell(claim_by(LEAVING), DM_EV_LEAVE);
    enter(claim_by(LOST));
    tell(claim_by(LOST), DM_EV_TOLD_LOST);
    tell(claim_by(OVER), DM_EV_GIVEN_BACK);
}

/* ---- after ------------------------------------------------------------------------------- */

static void must_be_right(void)
{
    int64_t now_ns = dm_clock_boot_ns();

    for (struct dm_claim *claim = runtime.registry.claims; claim; claim = claim->next) {
        const struct dm_hold *hold = &claim->hold;

        must(hold->phase <= DM_OVER);
        must(hold->certain_until_ns <= now_ns + LEASE_MS * DM_NS_PER_MS);
        must(!dm_hold_is_certain(hold, now_ns) || hold->phase == DM_HELD || hold->phase == DM_LEAVING);
        must(hold->phase != DM_QUEUED || hold->poll_ns <= now_ns + LEASE_MS * DM_NS_PER_MS);
        must(hold->serial != LOST || hold->phase == DM_LOST);
        must(hold->serial != OVER || hold->phase == DM_RETURNING);
        must(!hold->is_wanted || hold->phase == DM_HELD || hold->phase == DM_LOST);
    }
}

/* With a store that is never connected. */
static void set_up(void)
{
    const struct dm_host host = { .user = &runtime, .on_message = dm_inbox_take };
    char reason[DM_REASON_ROOM];

    dm_ident_draw(&runtime.ident, "");
    runtime.store = dm_redis_open(dm_url_parse("unix:///nowhere", reason), &runtime.ident, &host, reason);
    must(runtime.store);
    dm_registry_init(&runtime.registry, runtime.store, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    const struct dm_server server = { .run = dm_server_read_run(RUN) };
    char *lines = strdup(fuzz_text(bytes, length)), *rest = lines, *line;

    must(lines);
    if (!runtime.registry.names)
        set_up();
    dm_state_lock();
    begin();
    dm_state_unlock();
    while ((line = strsep(&rest, "\n"))) {
        dm_redis_hear(dm_redis(runtime.store), line, &server);
        dm_state_lock();
        must(strcmp(line, "wanted 3") != 0 || claim_by(HELD)->hold.is_wanted || claim_by(HELD)->hold.phase == DM_LOST);
        must_be_right();
        dm_state_unlock();
    }
    dm_state_lock();
    dm_claim_drop_all(&runtime.registry);
    dm_registry_empty(&runtime.registry);
    dm_state_unlock();
    free(lines);
    return 0;
}
