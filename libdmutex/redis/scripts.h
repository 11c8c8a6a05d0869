/* SPDX-License-Identifier: BSD-2-Clause */
/* The scripts of lua/, embedded at build time: the text and the SHA-1 of each script. */
#ifndef DM_REDIS_SCRIPTS_H
#define DM_REDIS_SCRIPTS_H

#define DM_SCRIPT(name)                \
    extern const char dm_lua_##name[]; \
    extern const char dm_sha_##name[]

DM_SCRIPT(acquire);
DM_SCRIPT(born);
DM_SCRIPT(cancel);
DM_SCRIPT(cond_cancel);
DM_SCRIPT(cond_drop);
DM_SCRIPT(cond_signal);
DM_SCRIPT(cond_wait);
DM_SCRIPT(consistent);
DM_SCRIPT(drop);
DM_SCRIPT(force);
DM_SCRIPT(info);
DM_SCRIPT(poll);
DM_SCRIPT(probe);
DM_SCRIPT(release);
DM_SCRIPT(renew);

#undef DM_SCRIPT

#endif
