/* SPDX-License-Identifier: BSD-2-Clause */
/* A database of PostgreSQL: the module looks, because only it has libpq. */
#include "config.h"
#include "doctor.h"
#include "stores/postgres/open.h"
#include "tool.h"

static void take(void *user, int grade, const char *check, const char *text, const char *advice)
{
    static const enum grade grades[] = {
        [DM_PG_OK] = GRADE_OK, [DM_PG_WARNS] = GRADE_WARN, [DM_PG_FAILS] = GRADE_FAIL
    };
    struct doctor *doctor = user;

    doctor_find(doctor, grades[grade], check, "%s", text);
    if (*advice)
        doctor_advise(doctor, "%s", advice);
}

static enum answer answer_of(bool is)
{
    return is ? YES : NO;
}

int doctor_examine_postgres(struct doctor *doctor)
{
    const struct dm_url *url = doctor->url;
    const struct dm_reg_place place = { url->database, url->prefix, url->connect_timeout_ms, url->command_timeout_ms };
    const struct dm_pg_report report = { doctor, take };
    struct dm_pg_facts facts = { .is_usable = false };
    char reason[DM_REASON_ROOM];
    dm_pg_examine_fn *examine = dm_postgres_examiner(reason);
    enum dm_pg_end end;

    if (!examine) {
        doctor_find(doctor, GRADE_FAIL, "module", "%s", reason);
        return TOOL_UNREACHABLE;
    }
    end = examine(PACKAGE_VERSION, &place, &report, &facts);
    doctor->facts = (struct facts){
        .is_master = answer_of(facts.is_usable),
        .keeps_locks = YES,
        .survives_power = answer_of(facts.survives_crash),
        .knows_birth = YES,
    };
    return end == DM_PG_EXAMINED ? 0 : end == DM_PG_NO_LOGIN ? TOOL_DENIED : TOOL_UNREACHABLE;
}
