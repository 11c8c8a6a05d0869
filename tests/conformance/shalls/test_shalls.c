/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every clause of POSIX's mutex and condition variable pages has the same outcome with libc's pthread and with dmutex,
 * or exactly the difference that is listed in `differences`.
 *
 * shalls_pthread and shalls_dmutex are the same source, compiled twice; both are next to this program. Each line of
 * their output is a test of its own here.
 *
 *     test_shalls                     all; DMUTEX_PRIVATE=libc or =server decides on private mutexes
 *     test_shalls page|id...          arguments as for shalls_pthread
 */
#include "../../lib/testlib.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CLAUSES 400
#define LINE_ROOM 2000

/* Length of the mark before the text in a line of `differences`. */
#define MARK 13

/* The two programs. */
enum { PTHREAD, DMUTEX };
static const char *const programs[] = { "shalls_pthread", "shalls_dmutex" };

/* A listed difference. */
struct difference {
    char id[LINE_ROOM];
    char outcome[2][LINE_ROOM];
    char only[LINE_ROOM]; /* "server": a difference of private mutexes of the server */
    char why[LINE_ROOM];
    bool is_used; /* by a clause of this name */
};

/* A clause, and the outcomes of the two programs. */
struct clause {
    char id[80];
    char title[200]; /* id and name */
    char outcome[2][LINE_ROOM];
    struct difference *difference; /* NULL: none is listed */
};

static struct difference differences[CLAUSES];
static int difference_count;
static struct clause clauses[CLAUSES];
static int clause_count;
static char **chosen; /* arguments for the programs */

/* ---- The list -------------------------------------------------------------------------------- */

/* Adds a line to a field, after a space if the field is not empty. */
static void append(char *field, const char *text)
{
    size_t length = strlen(field);

    snprintf(field + length, LINE_ROOM - length, "%s%s", length > 0 ? " " : "", text);
}

/* The field of a difference that a line belongs to: by the line's mark, or the mark of the line before. */
static char *field_of(struct difference *difference, const char *line)
{
    static char *field;

    if (strncmp(line, "    pthread: ", MARK) == 0)
        field = difference->outcome[PTHREAD];
    else if (strncmp(line, "    dmutex:  ", MARK) == 0)
        field = difference->outcome[DMUTEX];
    else if (strncmp(line, "    only:    ", MARK) == 0)
        field = difference->only;
    else if (strncmp(line, "    why:     ", MARK) == 0)
        field = difference->why;
    else if (strspn(line, " ") != MARK)
        return NULL;
    return field;
}

/* One line of the list, without the newline; false if the line is no difference. */
static bool read_difference(const char *line)
{
    char *field;

    if (line[0] == '\0' || line[0] == '#')
        return true;
    if (line[0] != ' ') {
        append(differences[difference_count++].id, line);
        return true;
    }
    if (difference_count == 0)
        return false;
    field = field_of(&differences[difference_count - 1], line);
    if (field)
        append(field, line + MARK);
    return field != NULL;
}

static void read_differences(void)
{
    char line[LINE_ROOM];
    FILE *file = fopen(DIFFERENCES, "r");

    while (file && difference_count < CLAUSES && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        if (!read_difference(line)) {
            fprintf(stderr, "%s: no such line is known: %s\n", DIFFERENCES, line);
            exit(1);
        }
    }
    if (!file || fclose(file) != 0) {
        perror(DIFFERENCES);
        exit(1);
    }
}

static struct difference *find_difference(const char *id)
{
    for (int i = 0; i < difference_count; i++) {
        if (strcmp(differences[i].id, id) == 0)
            return &differences[i];
    }
    return NULL;
}

/* ---- The programs ---------------------------------------------------------------------------- */

/* Becomes one of the programs; the output goes to a file. */
static void execute(const char *program, bool is_list, FILE *output)
{
    char path[4096], list[] = "--list";
    char *arguments[CLAUSES + 3] = { path };
    int count = 1;

    snprintf(path, sizeof path, "%.*s/%s", (int)(strrchr(program_path, '/') - program_path), program_path, program);
    if (is_list)
        arguments[count++] = list;
    for (int i = 0; chosen[i] && i < CLAUSES; i++)
        arguments[count++] = chosen[i];
    dup2(fileno(output), STDOUT_FILENO);
    execv(path, arguments);
    perror(path);
    _exit(127);
}

/* Runs one of the programs to the end: the output, rewound, NULL on a failure. */
static FILE *run(const char *program, bool is_list)
{
    FILE *output = tmpfile();
    pid_t pid = keeper_fork();
    int status;

    if (pid == 0)
        execute(program, is_list, output);
    waitpid(pid, &status, 0);
    keeper_forget(pid);
    rewind(output);
    if (status == 0)
        return output;
    fprintf(stderr, "%s failed: status %d\n", program, status);
    return NULL;
}

/* libc's own private mutexes show no difference where only private mutexes of the server differ. */
static bool is_shown(const struct difference *difference)
{
    return !difference->only[0] || strcmp(difference->only, getenv("DMUTEX_PRIVATE")) == 0;
}

/* Makes a clause of each line of the list. */
static void list_clauses(void)
{
    FILE *list = run(programs[PTHREAD], true);
    struct clause *clause = clauses;

    while (list && clause_count < CLAUSES && fgets(clause->title, sizeof clause->title, list)) {
        clause->title[strcspn(clause->title, "\n")] = '\0';
        sscanf(clause->title, "%79s", clause->id);
        clause->difference = find_difference(clause->id);
        if (clause->difference)
            clause->difference->is_used = true;
        if (clause->difference && !is_shown(clause->difference))
            clause->difference = NULL;
        clause++;
        clause_count++;
    }
    if (!list || clause_count == 0)
        exit(1);
    fclose(list);
}

/* The outcome in a line of a clause; NULL if the line is another clause's. */
static const char *outcome_in(const struct clause *clause, char *line)
{
    size_t length = strlen(clause->title);

    line[strcspn(line, "\n")] = '\0';
    if (strncmp(line, clause->title, length) != 0 || line[length] != ':')
        return NULL;
    line += length + 1;
    return line + strspn(line, " ");
}

/* Runs a program for the outcomes; false if some are missing. */
static bool take_outcomes(int which)
{
    FILE *output = run(programs[which], false);
    char line[LINE_ROOM];

    for (int i = 0; output && i < clause_count; i++) {
        const char *outcome = fgets(line, sizeof line, output) ? outcome_in(&clauses[i], line) : NULL;

        if (!outcome)
            return false;
        append(clauses[i].outcome[which], outcome);
    }
    if (output)
        fclose(output);
    return output != NULL;
}

/*
 * The group's state stays NULL, because cmocka would give it to each test instead of the test's own. A server that gets
 * no CPU for seconds must not change an outcome: hence the long timeouts.
 */
static int run_both(void **state)
{
    char url[256];

    (void)state;
    the_server = server_start();
    snprintf(url, sizeof url, "%s&command_timeout=20000&connect_timeout=20000", the_server->url);
    setenv("DMUTEX_URL", url, 1);
    return take_outcomes(PTHREAD) && take_outcomes(DMUTEX) ? 0 : -1;
}

/* ---- Tests ----------------------------------------------------------------------------------- */

/* The outcomes are equal, or as listed, and then not equal. */
static void test_clause_is_as_in_pthread(void **state)
{
    const struct clause *clause = *state;

    if (!clause->difference) {
        assert_string_equal(clause->outcome[DMUTEX], clause->outcome[PTHREAD]);
        return;
    }
    if (strcmp(clause->outcome[DMUTEX], clause->outcome[PTHREAD]) == 0)
        fail_msg("no difference any more, but listed: %s", clause->outcome[DMUTEX]);
    assert_string_equal(clause->outcome[PTHREAD], clause->difference->outcome[PTHREAD]);
    assert_string_equal(clause->outcome[DMUTEX], clause->difference->outcome[DMUTEX]);
}

/* Each listed difference belongs to a clause, and has a reason. */
static void test_differences_are_clauses_with_reasons(void **state)
{
    (void)state;
    for (int i = 0; i < difference_count; i++) {
        if (!differences[i].is_used && !chosen[0])
            fail_msg("no clause has the id %s", differences[i].id);
        if (!differences[i].why[0])
            fail_msg("%s has no reason", differences[i].id);
    }
}

/* Only the clauses with the given ids or pages. */
int main(int argc, char **argv)
{
    static struct CMUnitTest tests[CLAUSES + 1];

    test_begin(argc, argv);
    chosen = argv + 1;
    read_differences();
    list_clauses();
    for (int i = 0; i < clause_count; i++) {
        tests[i] = (struct CMUnitTest){ .name = clauses[i].title,
                                        .test_func = test_clause_is_as_in_pthread,
                                        .initial_state = &clauses[i] };
    }
    tests[clause_count] = (struct CMUnitTest)cmocka_unit_test(test_differences_are_clauses_with_reasons);
    return _cmocka_run_group_tests("shalls", tests, (size_t)clause_count + 1, run_both, test_group_teardown);
}
