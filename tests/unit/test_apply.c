/* SPDX-License-Identifier: BSD-2-Clause */
/* registers/apply: the lock protocol of one name.  Each step is done twice, and each value passes through its bytes. */
#include "names.h"

static struct dm_reg_name_value name;

static int empty_name(void **state)
{
    (void)state;
    dm_reg_writer_init(&names_writer);
    dm_reg_name_init(&name);
    return 0;
}

static int free_name(void **state)
{
    (void)state;
    dm_reg_name_free(&name);
    return 0;
}

/* ---- the table --------------------------------------------------------------------------- */

/* The name before; the act, by whom; the verdict; the name afterwards, and what else there is to say. */
#define ROW(name_before, which, by, says, ...)                                                                   \
    {                                                                                                            \
        .before = name_before, .act = DM_REG_##which, .who = by, .verdict = DM_SAYS_##says, .after = __VA_ARGS__ \
    }

struct row {
    const char *before;
    enum dm_reg_act act;
    const char *who;
    enum dm_verdict verdict;
    const char *after;
    enum dm_end end;
    const char *dead;    /* letters of processes */
    const char *leaving; /* WAIT */
    bool is_robust, is_anonymous;
    int most;
    enum dm_reg_mark mark;
};

static void do_row(const struct row *row)
{
    struct dm_reg_session_id dead[8];
    struct dm_reg_step step = step_by(row->act, row->who);
    char shown[TEXT_ROOM];

    step.end = row->end;
    step.is_robust = row->is_robust;
    step.is_anonymous = row->is_anonymous;
    step.most = row->most ? row->most : 1;
    step.mark = row->mark;
    if (row->leaving)
        step.leaving = ref_of(row->leaving);
    for (const char *letter = row->dead; letter && *letter; letter++)
        dead[step.dead_count++] = session_of_letter(*letter);
    step.dead = dead;
    dm_reg_name_free(&name);
    set_name(&name, row->before);
    if (!*row->before)
        step.quiet_ms = LEASE_MS;
    apply_twice(&name, &step);
    if (!is_name(&name, row->after) || result.answer.verdict != row->verdict) {
        show_name(&name, shown);
        fail_msg("\"%s\", act %d by %s: \"%s\", verdict %d", row->before, row->act, row->who, shown,
                 result.answer.verdict);
    }
}

/* All steps on all kinds of states. */
static void test_step_leads_to_the_next_state_when_done_once_or_twice(void **state)
{
    static const struct row rows[] = {
        /* acquire */
        ROW("", ACQUIRE, "a1", OWNED, "a1 | |"),
        ROW("| |", ACQUIRE, "a1", OWNED, "a1 | |"),
        ROW("a1 | |", ACQUIRE, "a1", OWNED, "a1 | |"),
        ROW("a1 | |", ACQUIRE, "b2", QUEUED, "a1 | b2 |"),
        ROW("a1 | b2 |", ACQUIRE, "b2", QUEUED, "a1 | b2 |"),
        ROW("a1 | b2 |", ACQUIRE, "c3", QUEUED, "a1 | b2 c3 |"),
        ROW("| | ; never", ACQUIRE, "a1", NOT_RECOVERABLE, "| | ; never"),
        ROW("| | ; died", ACQUIRE, "a1", OWNED, "a1r | | ; died", .is_robust = true),
        /* try */
        ROW("| |", TRY, "a1", OWNED, "a1 | |"),
        ROW("a1 | |", TRY, "b2", BUSY, "a1 | |"),
        ROW("| | ; never", TRY, "a1", NOT_RECOVERABLE, "| | ; never"),
        /* release */
        ROW("a1 | |", RELEASE, "a1", DONE, "| |"),
        ROW("a1 | b2 |", RELEASE, "b2", DONE, "a1 | |"),
        ROW("a1 | b2 | c3:x", RELEASE, "c3", DONE, "a1 | b2 |"),
        ROW("a1 | b2 |", RELEASE, "c3", NOT_OWNER, "a1 | b2 |"),
        ROW("a1 | b2 |", RELEASE, "b1", NOT_OWNER, "a1 | b2 |"),
        /* cancel */
        ROW("a1 | b2 |", CANCEL, "b2", DONE, "a1 | |"),
        ROW("a1 | b2 |", CANCEL, "a1", OWNED, "a1 | b2 |"),
        ROW("a1 | b2 |", CANCEL, "c3", DONE, "a1 | b2 |"),
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        do_row(&rows[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_step_leads_to_the_next_state_when_done_once_or_twice, empty_name,
                                        free_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
