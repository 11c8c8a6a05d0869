/* SPDX-License-Identifier: BSD-2-Clause */
#include "filter.h"

#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

bool filter_add(struct sock_filter *code, unsigned short count)
{
    struct sock_fprog program = { .len = count, .filter = code };

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

bool filter_refuse(long call, int error)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };

    return filter_add(code, sizeof code / sizeof code[0]);
}
