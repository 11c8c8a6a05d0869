/* SPDX-License-Identifier: BSD-2-Clause */
/* Between the library and its core: what a negative control takes out of it. */
#ifndef SIM_HOOKS_H
#define SIM_HOOKS_H

enum core_defect {
    CORE_IS_WHOLE,
    CORE_TRUSTS_ANY_GRANT, /* a message counts from the newest request, whatever it names */
    CORE_HAS_NO_MARGIN,    /* certain for the whole lease, not for 0.8 of it */
    CORE_HOLDS_AGAIN,      /* a grant for an attempt that was given back is believed */
    CORE_FORGETS_RENEWALS  /* holds are never renewed */
};

void hooks_set(enum core_defect defect);

#endif
