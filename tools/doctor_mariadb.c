/* SPDX-License-Identifier: BSD-2-Clause */
/* A database of MariaDB: the module looks, because only it has libmariadb. */
#include "config.h"
#include "doctor.h"
#include "stores/mariadb/open.h"
#include "tool.h"

static void take(void *user, int grade, const char *check, const char *text, const char *advice)
{
    static const enum grade grades[] = {
        [DM_MARIA_OK] = GRADE_OK, [DM_MARIA_WARNS] = GRADE_WARN, [DM_MARIA_FAILS] = GRADE_FAIL
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

int doctor_examine_mariadb(struct doctor *doctor)
{
    const struct dm_maria_report report = { doctor, take };
    struct dm_maria_facts facts = { .is_usable = false };
    char reason[DM_REASON_ROOM];
    dm_maria_examine_fn *examine = dm_mariadb_examiner(reason);
    enum dm_maria_end end;

    if (!examine) {
        doctor_find(doctor, GRADE_FAIL, "module", "%s", reason);
        return TOOL_UNREACHABLE;
    }
    end = examine(PACKAGE_VERSION, doctor->url, &report, &facts);
    if (end == DM_MARIA_EXAMINED)
        doctor_look_at_tls(doctor);
    doctor->facts = (struct facts){
        .is_master = answer_of(facts.is_usable),
        .keeps_locks = YES,
        .survives_power = answer_of(facts.survives_crash),
        .knows_birth = YES,
    };
    return end == DM_MARIA_EXAMINED ? 0 : end == DM_MARIA_NO_LOGIN ? TOOL_DENIED : TOOL_UNREACHABLE;
}
