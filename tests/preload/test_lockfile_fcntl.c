/* SPDX-License-Identifier: BSD-2-Clause */
/* fcntl() and lockf() on two hosts: each form of the call, and the lock's owner. */
#include <signal.h>

#include "host.h"

#define AT_ONCE 5000 /* far below the lease */

/* Makes both hosts with long leases: a lock that is free at once is free by a release, not by the end of a lease. */
static int setup(void **state)
{
    test_group_setup(state);
    a = host_make("a", "lease=60s");
    b = host_make("b", "lease=60s");
    return 0;
}

/* Asserts the locker's output for some words, on a host. */
#define assert_prints(host, words, wanted)                             \
    do {                                                               \
        struct job *asked = host_start(host, "$LOCKER x.lock " words); \
                                                                       \
        assert_string_equal(job_rest(asked), wanted);                  \
        assert_int_equal(job_end(asked), 0);                           \
    } while (0)

/* Waits until host b can lock, and asserts that the bound is not over. */
static void assert_is_free_at_once(void)
{
    side_set_bound(the_server->side, "bound", AT_ONCE);
    assert_prints(b, "setlkw", "setlkw 0\n");
    assert_false(side_is_control_over(the_server->side, "bound"));
}

/* ---- the forms --------------------------------------------------------------------------- */

/* Each form of a lock keeps out each form of a try on another host. */
static void test_every_form_excludes_every_form_of_another_host(void **state)
{
    static const struct {
        const char *script, *said;
    } holders[] = {
        { "$LOCKER x.lock setlk wait", "setlk 0" },         { "$LOCKER x.lock setlkw wait", "setlkw 0" },
        { "$LOCKER x.lock ofd-setlk wait", "ofd-setlk 0" }, { "$LOCKER x.lock ofd-setlkw wait", "ofd-setlkw 0" },
        { "$LOCKER x.lock lockf wait", "lockf 0" },         { "$LOCKER x.lock tlock wait", "tlock 0" },
        { "$LOCKER x.lock last wait", "last 0" },
    };

    for (size_t i = 0; i < sizeof holders / sizeof holders[0]; i++) {
        struct job *holder;

        host_begin_test(state);
        holder = host_start(a, holders[i].script);
        job_expect(holder, holders[i].said);
        assert_prints(b, "setlk ofd-setlk tlock ltest get ofd-get flock-try",
                      "setlk EAGAIN\nofd-setlk EAGAIN\ntlock EAGAIN\nltest EACCES\nget far\nofd-get far\n"
                      "flock-try EAGAIN\n");
        job_finish(holder);
    }
}

/* Each form of unlock frees the lock for the other host, while the file stays open. */
static void test_every_form_of_unlock_frees_it_for_the_other_host(void **state)
{
    static const struct {
        const char *script, *first, *second;
    } holders[] = {
        { "$LOCKER x.lock setlkw unlck wait", "setlkw 0", "unlck 0" },
        { "$LOCKER x.lock ofd-setlkw ofd-unlck wait", "ofd-setlkw 0", "ofd-unlck 0" },
        { "$LOCKER x.lock lockf ulock wait", "lockf 0", "ulock 0" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof holders / sizeof holders[0]; i++) {
        struct job *holder = host_start(a, holders[i].script);

        job_expect(holder, holders[i].first);
        job_expect(holder, holders[i].second);
        assert_is_free_at_once();
        job_finish(holder);
    }
}

/* Each waiting form waits, and gets the lock when the other host's holder ends. */
static void test_every_waiting_form_gets_the_lock_when_the_other_host_ends(void **state)
{
    static const struct {
        const char *script, *said;
    } waiters[] = {
        { "$LOCKER x.lock setlkw", "setlkw 0" },
        { "$LOCKER x.lock ofd-setlkw", "ofd-setlkw 0" },
        { "$LOCKER x.lock lockf", "lockf 0" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof waiters / sizeof waiters[0]; i++) {
        struct job *holder = host_start(a, "$LOCKER x.lock setlkw wait"), *waiter;

        job_expect(holder, "setlkw 0");
        waiter = host_start(b, waiters[i].script);
        wait_until(waiters_for("x.lock") == 1);
        assert_false(job_has_spoken(waiter));
        job_finish(holder);
        job_expect(waiter, waiters[i].said);
        assert_int_equal(job_end(waiter), 0);
    }
}

/*
 * F_GETLK names a holder of this host as the kernel does, before a holder of another host; a caller's own lock counts
 * as free.
 */
static void test_getlk_reports_who_has_the_lock(void **state)
{
    struct job *holder;

    (void)state;
    assert_prints(a, "get ofd-get ltest", "get free\nofd-get free\nltest 0\n");
    holder = host_start(a, "$LOCKER x.lock setlk get ltest reopen get wait");
    job_expect(holder, "setlk 0");
    job_expect(holder, "get free");
    job_expect(holder, "ltest 0");
    job_expect(holder, "get free");
    assert_prints(a, "get", "get here\n");
    assert_prints(b, "get", "get far\n");
    job_finish(holder);
}

/* A lock of a part of a file, and a shared lock, fail, and leave nothing locked, here or on another host. */
static void test_a_part_of_a_file_and_a_shared_lock_are_refused(void **state)
{
    struct job *holder, *local;

    (void)state;
    assert_prints(a, "part rdlck flock-sh", "part ENOLCK\nrdlck ENOLCK\nflock-sh ENOLCK\n");
    assert_true(host_has_said(a, "a lock of a part of a file is not distributed"));
    assert_prints(b, "setlk", "setlk 0\n");
    holder = host_start(a, "$LOCKER x.lock part rdlck flock-sh wait");
    job_expect(holder, "part ENOLCK");
    job_expect(holder, "rdlck ENOLCK");
    job_expect(holder, "flock-sh ENOLCK");
    local = host_start(a, "DMUTEX_MAP= $LOCKER x.lock setlk flock-try");
    assert_string_equal(job_rest(local), "setlk 0\nflock-try 0\n");
    assert_int_equal(job_end(local), 0);
    job_finish(holder);
}

/* A rule for fcntl() does not concern flock(). */
static void test_flock_is_local_when_the_rule_is_for_fcntl(void **state)
{
    struct job *holder = host_start(a, "DMUTEX_MAP=\"fcntl:$PWD/*.lock => f/%b\" $LOCKER x.lock flock wait setlk wait");

    (void)state;
    job_expect(holder, "flock 0");
    assert_prints(b, "flock-try", "flock-try 0\n");
    host_begin_test(state);
    job_go(holder);
    job_expect(holder, "setlk 0");
    assert_prints(b, "flock-try", "flock-try EAGAIN\n");
    job_finish(holder);
}

/* flock() and fcntl() of one program do not disturb each other, as in the kernel, and are one mutex for other hosts. */
static void test_flock_and_fcntl_of_one_host_share_the_mutex(void **state)
{
    struct job *holder = host_start(a, "$LOCKER x.lock flock setlkw get wait flock-un wait unlck wait");

    (void)state;
    job_expect(holder, "flock 0");
    job_expect(holder, "setlkw 0");
    job_expect(holder, "get free");
    assert_prints(b, "setlk flock-try get", "setlk EAGAIN\nflock-try EAGAIN\nget far\n");
    assert_prints(a, "setlk flock-try", "setlk EAGAIN\nflock-try EAGAIN\n");
    job_go(holder);
    job_expect(holder, "flock-un 0");
    assert_prints(b, "flock-try", "flock-try EAGAIN\n");
    assert_prints(a, "get flock-try flock-un", "get here\nflock-try 0\nflock-un 0\n");
    job_go(holder);
    job_expect(holder, "unlck 0");
    assert_is_free_at_once();
    job_finish(holder);
}

/* ---- the lock's owner -------------------------------------------------------------------- */

/* POSIX: the end of any descriptor of the file ends the process's lock. */
static void test_the_lock_ends_when_any_descriptor_of_the_file_is_closed(void **state)
{
    struct job *holder = host_start(a, "$LOCKER x.lock setlkw close-other wait");

    (void)state;
    job_expect(holder, "setlkw 0");
    assert_is_free_at_once();
    job_finish(holder);
}

/* A child of fork() does not have its parent's lock. */
static void test_the_lock_ends_with_the_process_and_not_with_its_child(void **state)
{
    struct job *holder = host_start(a, "$LOCKER x.lock setlkw fork say child wait; read go");

    (void)state;
    job_expect(holder, "setlkw 0");
    assert_is_free_at_once();
    job_expect(holder, "child");
    job_go(holder);
    job_go(holder);
    assert_int_equal(job_end(holder), 0);
}

/* An open file's lock belongs to a child of fork(), too, and ends with the last descriptor. */
static void test_the_lock_of_an_open_file_ends_with_its_last_descriptor(void **state)
{
    struct job *holder = host_start(a, "$LOCKER x.lock ofd-setlkw fork wait; read go");

    (void)state;
    job_expect(holder, "ofd-setlkw 0");
    assert_prints(b, "setlk", "setlk EAGAIN\n");
    job_go(holder);
    job_go(holder);
    assert_int_equal(job_end(holder), 0);
    assert_is_free_at_once();
}

/* Locking again changes nothing, by any descriptor; the other host never gets the lock in between. */
static void test_locking_again_changes_nothing(void **state)
{
    struct job *holder = host_start(a, "$LOCKER x.lock setlkw setlkw reopen setlk setlkw wait unlck wait"), *waiter;

    (void)state;
    job_expect(holder, "setlkw 0");
    waiter = host_start(b, "$LOCKER x.lock setlkw");
    job_expect(holder, "setlkw 0");
    job_expect(holder, "setlk 0");
    job_expect(holder, "setlkw 0");
    wait_until(waiters_for("x.lock") == 1);
    assert_false(job_has_spoken(waiter));
    job_go(holder);
    job_expect(holder, "unlck 0");
    job_expect(waiter, "setlkw 0");
    assert_int_equal(job_end(waiter), 0);
    job_finish(holder);
}

/* A host that locks again right after an unlock comes after the other host's waiter. */
static void test_a_host_that_locks_again_at_once_waits_after_the_other(void **state)
{
    struct job *holder = host_start(a, "$LOCKER x.lock setlkw wait unlck setlkw wait"), *waiter;

    (void)state;
    job_expect(holder, "setlkw 0");
    waiter = host_start(b, "$LOCKER x.lock setlkw wait");
    wait_until(waiters_for("x.lock") == 1);
    job_go(holder);
    job_expect(holder, "unlck 0");
    job_expect(waiter, "setlkw 0");
    assert_false(job_has_spoken(holder));
    job_finish(waiter);
    job_expect(holder, "setlkw 0");
    job_finish(holder);
}

/* The lock of a process outlives exec(). */
static void test_the_lock_is_kept_over_exec(void **state)
{
    struct job *holder = host_start(
        a, "perl -e 'use Fcntl qw(:flock :seek F_SETLK F_WRLCK); $^F = 99; open(F, \">>\", \"x.lock\"); "
           "my $all = pack(\"s s x4 q q l x4\", F_WRLCK, SEEK_SET, 0, 0, 0); fcntl(F, F_SETLK, $all) or die $!; "
           "exec \"sh\", \"-c\", \"echo has; read go\"'");

    (void)state;
    job_expect(holder, "has");
    assert_prints(b, "setlk", "setlk EAGAIN\n");
    job_finish(holder);
}

/* ---- waiting ----------------------------------------------------------------------------- */

static void test_setlkw_fails_with_eintr_when_a_handler_has_run(void **state)
{
    struct job *holder = host_start(a, "$LOCKER x.lock setlkw wait"), *waiter;

    (void)state;
    job_expect(holder, "setlkw 0");
    waiter = host_start(b, "exec $LOCKER x.lock handle setlkw wait");
    wait_until(waiters_for("x.lock") == 1);
    wait_until((job_signal(waiter, SIGALRM), job_has_spoken(waiter)));
    job_expect(waiter, "setlkw EINTR");
    assert_int_equal(host_run(b, "DMUTEX_MAP= $LOCKER x.lock setlk"), 0); /* the kernel's lock is free again */
    job_finish(holder);
    job_finish(waiter);
}

/* F_SETLKW is a cancellation point; a cancelled wait leaves no lock, neither on the server nor in the kernel. */
static void test_setlkw_is_cancelled_while_it_waits(void **state)
{
    struct job *holder = host_start(a, "$LOCKER x.lock setlkw wait"), *waiter;

    (void)state;
    job_expect(holder, "setlkw 0");
    waiter = host_start(b, "$LOCKER x.lock cancel setlkw wait");
    wait_until(waiters_for("x.lock") == 1);
    job_go(waiter);
    job_expect(waiter, "cancel 0");
    assert_prints(b, "setlk", "setlk EAGAIN\n");
    {
        struct job *local = host_start(b, "DMUTEX_MAP= $LOCKER x.lock setlk");

        job_expect(local, "setlk 0");
        assert_int_equal(job_end(local), 0);
    }
    job_finish(holder);
    job_finish(waiter);
}

/* Python's fcntl.lockf(), common in scripts, excludes the other host. */
static void test_python_locks(void **state)
{
    struct job *holder = host_start(a, "python3 -c 'import fcntl; f = open(\"x.lock\", \"w\"); "
                                       "fcntl.lockf(f, fcntl.LOCK_EX); print(\"has\", flush=True); input()'");

    (void)state;
    job_expect(holder, "has");
    assert_int_equal(host_run(b, "python3 -c 'import fcntl,sys; f = open(\"x.lock\", \"w\")\n"
                                 "try: fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
                                 "except BlockingIOError: sys.exit(9)'"),
                     9);
    job_finish(holder);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        host_test(test_every_form_excludes_every_form_of_another_host),
        host_test(test_every_form_of_unlock_frees_it_for_the_other_host),
        host_test(test_every_waiting_form_gets_the_lock_when_the_other_host_ends),
        host_test(test_getlk_reports_who_has_the_lock),
        host_test(test_a_part_of_a_file_and_a_shared_lock_are_refused),
        host_test(test_flock_is_local_when_the_rule_is_for_fcntl),
        host_test(test_flock_and_fcntl_of_one_host_share_the_mutex),
        host_test(test_the_lock_ends_when_any_descriptor_of_the_file_is_closed),
        host_test(test_the_lock_ends_with_the_process_and_not_with_its_child),
        host_test(test_the_lock_of_an_open_file_ends_with_its_last_descriptor),
        host_test(test_locking_again_changes_nothing),
        host_test(test_a_host_that_locks_again_at_once_waits_after_the_other),
        host_test(test_the_lock_is_kept_over_exec),
        host_test(test_setlkw_fails_with_eintr_when_a_handler_has_run),
        host_test(test_setlkw_is_cancelled_while_it_waits),
        host_test(test_python_locks),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, setup, host_pair_teardown);
}
