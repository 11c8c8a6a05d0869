/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs that change their root directory to one where the module may not exist. */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

#include "module/base/real.h"
#include "shared/text.h"

/* The loader continues without a module that it does not find, so this is the last chance to say so. */
static void warn_if_left_behind(const char *root)
{
    static bool is_said;
    int error = errno;
    Dl_info info;

    if (dladdr((const void *)&warn_if_left_behind, &info) && access(info.dli_fname, R_OK) != 0 &&
        !__atomic_exchange_n(&is_said, true, __ATOMIC_RELAXED))
        text_say(info.dli_fname, " is not there in the root directory ", root,
                 ": programs that are executed in it are not distributed; run dmutex-run inside it", NULL);
    errno = error;
}

EXPORT int chroot(const char *path)
{
    int result = real_get()->chroot(path);

    if (result == 0)
        warn_if_left_behind(path);
    return result;
}
