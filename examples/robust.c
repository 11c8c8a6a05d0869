/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Robust: an owner is killed half way through an update. The next owner learns of it, and repairs the data.
 *
 * Two balances, whose sum must stay 100, are in memory that two processes share. A child takes from one and is killed
 * before it adds to the other. The data are in memory only to keep the example short; a file shared by several hosts
 * would work as well.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dmutex/dmutex.h>

enum { SUM = 100 };

struct accounts {
    int savings, current;
};

static dmutex_t accounts_mutex;

/* A killed owner is noticed when the lease ends: 1 s here, 10 s by default. */
static void set_up_mutex(void)
{
    dmutexattr_t attr;

    dmutexattr_init(&attr);
    dmutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    dmutexattr_setlease_np(&attr, 1000);
    dmutex_init_np(&accounts_mutex, "bank/accounts", &attr);
    dmutexattr_destroy(&attr);
}

static struct accounts *make_accounts(void)
{
    int protection = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_ANONYMOUS;
    struct accounts *accounts = mmap(NULL, sizeof *accounts, protection, flags, -1, 0);

    if (accounts == MAP_FAILED)
        exit(1);
    *accounts = (struct accounts){ .savings = 60, .current = 40 };
    return accounts;
}

static void die_in_transfer(struct accounts *accounts)
{
    if (dmutex_lock(&accounts_mutex) != 0)
        exit(1); /* the parent's lock will fail in the same way, and print the reason */
    accounts->savings -= 30;
    raise(SIGKILL);
    accounts->current += 30;
    dmutex_unlock(&accounts_mutex);
}

/* The repair: an amount that was taken but not added goes back. */
static void repair(struct accounts *accounts)
{
    accounts->savings = SUM - accounts->current;
}

static int lock_and_repair(struct accounts *accounts)
{
    int result = dmutex_lock(&accounts_mutex);

    if (result == EOWNERDEAD) {
        printf("EOWNERDEAD: the balances are %d and %d.\n", accounts->savings, accounts->current);
        repair(accounts);
        dmutex_consistent(&accounts_mutex);
    } else if (result != 0) {
        fprintf(stderr, "robust: %s\n", dmutex_strerror_np());
        exit(1);
    }
    return result;
}

int main(void)
{
    struct accounts *accounts = make_accounts();
    int first, second;
    pid_t child;

    set_up_mutex();
    child = fork();
    if (child == 0)
        die_in_transfer(accounts);
    waitpid(child, NULL, 0);

    first = lock_and_repair(accounts);
    dmutex_unlock(&accounts_mutex);
    second = lock_and_repair(accounts);
    dmutex_unlock(&accounts_mutex);
    printf("Repaired: the balances are %d and %d, and the next lock gave %d.\n", accounts->savings, accounts->current,
           second);
    if (first != EOWNERDEAD || second != 0)
        return 1;
    return accounts->savings + accounts->current == SUM ? 0 : 1;
}
