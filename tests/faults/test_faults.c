/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each call that can fail fails once: on each of the main paths, first the first call of each kind, then the second,
 * until a run ends before a call fails.  On a path whose runs start servers, one call in three fails; in long runs
 * each.  Of OpenSSL's own calls, every OPENSSL_STEP-th fails.  After each failure the path's calls return the promised
 * results, the path ends, the next lock and unlock work, and nothing is left: no descriptor, no thread, no key, and in
 * sanitized builds no memory.
 *
 *     DM_FAIL=network:17 tests/faults/test_faults handoff     one run, by hand
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../lib/testlib.h"
#include "../lib/tls.h"
#include "fail.h"
#include "paths.h"

/* Runs mostly wait for a pause or another process. */
#define AT_ONCE 6

/* Ends the test of a path after this many wrong runs. */
#define ENOUGH 10

/* OpenSSL allocates some 18000 times until the first lock; one call in this many fails. */
#define OPENSSL_STEP 1801
#define OPENSSL_LONG_STEP 7

static struct outcome *outcomes; /* shared with the runs: one outcome for each run, and the usual outcome */

static int wrong_runs; /* of one path */

static void end(struct run *run)
{
    const char *wrong = run_end(run);

    if (!wrong)
        return;
    printf("\n# %s\n", wrong);
    wrong_runs++;
}

/* The run in which nothing fails. */
static void run_usual(const struct path *path, enum fail_kind kind)
{
    struct run run = { .path = path, .kind = kind, .outcome = &outcomes[AT_ONCE] };

    run_start(&run);
    end(&run);
}

/* One call in how many fails. */
static unsigned step_of(const struct path *path, enum fail_kind kind)
{
    bool is_long = repetitions(1) > 1;

    if (kind == FAIL_OPENSSL)
        return is_long ? OPENSSL_LONG_STEP : OPENSSL_STEP;
    return path->starts_servers && !is_long ? 3 : 1;
}

/* Fails the calls of one kind, in turn; returns how many have failed. */
static unsigned fail_each(const struct path *path, enum fail_kind kind)
{
    struct run runs[AT_ONCE] = { { .pid = 0 } };
    unsigned started = 0, ended = 0, failed = 0, step = step_of(path, kind);
    bool is_through = false;

    while (!is_through || ended < started) {
        struct run *run;

        if (!is_through && started - ended < AT_ONCE) {
            run = &runs[started % AT_ONCE];
            *run = (struct run){ .path = path, .kind = kind, .nth = 1 + started++ * step, .usual = &outcomes[AT_ONCE] };
            run->outcome = &outcomes[run - runs];
            run_start(run);
            continue;
        }
        run = &runs[ended++ % AT_ONCE];
        end(run);
        failed += run->outcome->seen.call[0] != '\0';
        is_through = is_through || !run->outcome->seen.call[0] || wrong_runs >= ENOUGH;
    }
    return failed;
}

static void test_path(void **state)
{
    const struct path *path = *state;
    unsigned failed[FAIL_KINDS] = { 0 };

    printf("# %s:", path->name);
    wrong_runs = 0;
    run_usual(path, FAIL_MEMORY);
    for (enum fail_kind kind = 0; kind < FAIL_KINDS; kind++) {
        if (kind == FAIL_OPENSSL && !path->is_tls)
            continue;
        failed[kind] = fail_each(path, kind);
        printf(" %u %s", failed[kind], fail_names[kind]);
    }
    printf("\n");
    assert_int_equal(wrong_runs, 0);
    for (enum fail_kind kind = FAIL_MEMORY; kind <= FAIL_SHORT; kind++)
        assert_true(failed[kind] > 2); /* otherwise the test does not see the calls */
    assert_true(!path->is_tls || failed[FAIL_OPENSSL] > 3);
}

static struct cluster cluster;

static void start_cluster(void)
{
    static char url[100];

    cluster_start(&cluster, 1, false, CLUSTER_CALM_MS);
    snprintf(url, sizeof url, "%s", cluster_url_of(&cluster, 0, "?grace=off"));
    run_cluster_url = url;
}

static struct server *master, *replica;

static bool has_replica(void)
{
    return side_int(master->side, "WAIT 1 100") == 1;
}

static void start_master(void)
{
    static char url[100];

    master = server_start_with(true, "--repl-diskless-sync-delay", "0", NULL);
    replica = server_start_with(true, NULL);
    side_text(replica->side, "REPLICAOF 127.0.0.1 %d", master->port);
    side_text(master->side, "SET control:replicated 1 PX 60000");
    wait_until(has_replica());
    snprintf(url, sizeof url, "redis://127.0.0.1:%d?grace=off&wait=1", master->port);
    run_confirmed_url = url;
}

#if DM_HAVE_TLS
static struct tls_server *tls;

static void start_tls(void)
{
    static char url[400];

    tls_begin();
    tls = tls_server_start("server", "yes", NULL);
    snprintf(url, sizeof url, "%s&cert=%s/client.crt&key=%s/client.key", tls->url, tls_folder, tls_folder);
    run_tls_url = url;
}

static void end_tls(void)
{
    tls_server_end(tls);
    tls_end();
}
#else
static void start_tls(void)
{
}

static void end_tls(void)
{
}
#endif

/* Keys end with their lease. */
static void test_no_key_is_left(void **state)
{
    (void)state;
    check_keys(the_server->side);
    server_reconnect(cluster.nodes[0]);
    check_keys(cluster.nodes[0]->side);
    server_reconnect(master);
    check_keys(master->side);
#if DM_HAVE_TLS
    server_reconnect(tls->server); /* a run that cuts its connections may have cut the test's, which it inherits */
    check_keys(tls->server->side);
#endif
}

/* ---- by hand ----------------------------------------------------------------------------- */

static const struct path *find_path(const char *name)
{
    for (size_t i = 0; i < PATH_COUNT; i++) {
        if (strcmp(paths[i].name, name) == 0)
            return &paths[i];
    }
    fprintf(stderr, "there is no path %s\n", name);
    exit(2);
}

static void read_order(const char *order, struct run *ret_run)
{
    size_t length = strcspn(order, ":");

    while (ret_run->kind < FAIL_KINDS &&
           (strlen(fail_names[ret_run->kind]) != length || strncmp(fail_names[ret_run->kind], order, length) != 0))
        ret_run->kind++;
    if (ret_run->kind == FAIL_KINDS || !order[length]) {
        fprintf(stderr, "DM_FAIL=%s is not KIND:N\n", order);
        exit(2);
    }
    ret_run->nth = (unsigned)strtoul(order + length + 1, NULL, 10);
}

static int run_by_hand(const char *order, const char *name)
{
    struct run run = { .path = find_path(name), .outcome = &outcomes[0], .usual = &outcomes[AT_ONCE] };
    const char *wrong;

    read_order(order, &run);
    run_usual(run.path, run.kind);
    run_start(&run);
    wrong = run_end(&run);
    printf("%s failed, as one of %u: %s\n", run.outcome->seen.call[0] ? run.outcome->seen.call : "nothing",
           run.outcome->seen.count, wrong ? wrong : "all is well");
    return wrong != NULL;
}

/* ---- all --------------------------------------------------------------------------------- */

static int set_up(void **state)
{
    (void)state;
    the_server = server_start_with(true, NULL);
    start_cluster();
    start_master();
    start_tls();
    test_put_server_into_path();
    return 0;
}

static int tear_down(void **state)
{
    end_tls();
    server_end(replica);
    server_end(master);
    cluster_end(&cluster);
    return test_group_teardown(state);
}

static int run_all(void)
{
    struct CMUnitTest tests[PATH_COUNT + 1];
    static char names[PATH_COUNT][80];

    for (size_t i = 0; i < PATH_COUNT; i++) {
        snprintf(names[i], sizeof names[i], "test_path_%s_keeps_its_promises_when_anything_fails_once", paths[i].name);
        tests[i] = (struct CMUnitTest){ names[i], test_path, NULL, NULL, (void *)&paths[i] };
    }
    cmocka_set_test_filter(getenv("DM_PATH")); /* some of the tests, by hand: "*local*" */
    tests[PATH_COUNT] = (struct CMUnitTest)cmocka_unit_test(test_no_key_is_left);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

/* The library would load its module within a path, later than calls are assigned to libraries. */
static void load_module(void)
{
    char path[4096];

    if (!DM_HAVE_TLS)
        return;
    test_build_path(path, sizeof path, "libdmutex/.libs/libdmutex/libdmutex-tls.so");
    dlopen(path, RTLD_NOW);
}

int main(int argc, char **argv)
{
    const char *order = getenv("DM_FAIL");
    int result;

    test_begin(argc, argv);
    load_module();
    fail_begin();
    outcomes = mmap(NULL, (AT_ONCE + 1) * sizeof *outcomes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!order || argc < 2)
        return run_all();
    set_up(NULL);
    result = run_by_hand(order, argv[1]);
    tear_down(NULL);
    return result;
}
