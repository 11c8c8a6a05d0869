/* SPDX-License-Identifier: BSD-2-Clause */
/* dmutex-run with a Cluster: mutexes and lock files of unmodified programs are names of the Cluster. */
#include "run.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../lib/clusters.h"

/* Tries the mutex, and prints the result. */
static const char source[] = "#include <pthread.h>\n"
                             "#include <stdio.h>\n"
                             "pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;\n"
                             "int main(void)\n"
                             "{\n"
                             "    int result = pthread_mutex_trylock(&queue_lock);\n"
                             "    printf(\"%d\\n\", result);\n"
                             "    return result == 0 ? pthread_mutex_unlock(&queue_lock) : 0;\n"
                             "}\n";

static struct actor *other; /* uses the library itself */

static int setup(void **state)
{
    cluster_group_setup(state);
    run_server_setup(state);
    setenv("DMUTEX_URL", cluster_url(the_cluster, "?grace=off"), 1);
    other = actor_start_at(cluster_url(the_cluster, "?grace=off"));
    write_file("tries.c", 0644, "%s", source);
    compile("tries.c", "tries", "");
    return 0;
}

static int teardown(void **state)
{
    actor_end(other);
    cluster_group_teardown(state);
    return run_server_teardown(state);
}

static void run_tries(const char *group)
{
    char library[4096];

    test_build_path(library, sizeof library, "libdmutex/.libs");
    command_run("LD_LIBRARY_PATH=%s exec %s -e 'sym:tries:queue_lock => %s/queue' %s/tries", library, dmutex_run, group,
                folder);
    assert_status(0);
}

/* In a slot of each master. */
static void test_run_makes_a_mutex_a_name_of_the_cluster_when_a_rule_says_so(void **state)
{
    (void)state;
    for (int node = 0; node < 3; node++) {
        const char *group = cluster_group_on(the_cluster, node, "tr");

        run_tries(group);
        assert_string_equal(ran.output, "0\n");
        actor_do(other, "0", "lock %s/queue", group);
        run_tries(group);
        assert_string_equal(ran.output, "16\n"); /* EBUSY */
        actor_do(other, "0", "unlock %s/queue", group);
    }
}

/* Sends a line to the job, once it reads. */
static void send_go(void)
{
    int fd;

    wait_until((fd = open(in_folder("go"), O_WRONLY | O_NONBLOCK | O_CLOEXEC)) >= 0);
    assert_int_equal(write(fd, "go\n", 3), 3);
    close(fd);
}

/* The keeper holds the lock of a file for its job, and for no longer. */
static void test_run_makes_a_lock_file_a_name_of_the_cluster_when_a_rule_says_so(void **state)
{
    char command[4600];
    pid_t job;

    (void)state;
    snprintf(command, sizeof command, "exec %s -e 'flock:%s/*.lock => f/%%b' -- flock -n %s/x.lock", dmutex_run, folder,
             folder);
    actor_do(other, "0", "lock f/x.lock");
    command_run("%s true", command);
    assert_status(1);
    actor_do(other, "0", "unlock f/x.lock");
    assert_return_code(mkfifo(in_folder("go"), 0600), errno);
    job = command_start("%s sh -c 'touch %s; read go <%s'", command, in_folder("has"), in_folder("go"));
    wait_until(access(in_folder("has"), F_OK) == 0);
    actor_do(other, "EBUSY", "trylock f/x.lock");
    send_go();
    command_await(job);
    assert_status(0);
    actor_do(other, "0", "lock f/x.lock");
    actor_do(other, "0", "unlock f/x.lock");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_makes_a_mutex_a_name_of_the_cluster_when_a_rule_says_so),
        cmocka_unit_test(test_run_makes_a_lock_file_a_name_of_the_cluster_when_a_rule_says_so),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, setup, teardown);
}
