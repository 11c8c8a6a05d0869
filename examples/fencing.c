/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fencing: a process is stopped while it owns the mutex. It wakes up after its lease has ended, and writes, unaware
 * that there has been another owner. No lock can prevent such a write, but the guarded data can: each hold has a token,
 * higher than all before it, which the writer passes along; a token lower than the last one is refused.
 *
 * Shown with a file and, if the sqlite3 command is installed, with a row of an SQL table.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dmutex/dmutex.h>

static char directory[] = "/tmp/dmutex-fencing-XXXXXX";

static dmutex_t price_mutex;

static void set_up_mutex(void)
{
    dmutexattr_t attr;

    dmutexattr_init(&attr);
    dmutexattr_setlease_np(&attr, 1000);
    dmutex_init_np(&price_mutex, "shop/price", &attr);
    dmutexattr_destroy(&attr);
}

static uint64_t lock(void)
{
    uint64_t token = 0;

    if (dmutex_lock(&price_mutex) != 0 || dmutex_token_np(&price_mutex, &token) != 0) {
        fprintf(stderr, "fencing: %s\n", dmutex_strerror_np());
        exit(1);
    }
    return token;
}

/* ---- the file: "TOKEN PRICE" ------------------------------------------------------------- */

/*
 * The check and the write must be one step, because a pause between them would defeat the check. The file's own lock
 * makes them one; the writer holds it only for that moment.
 */
static bool write_file(uint64_t token, int price)
{
    char path[64];
    uint64_t last = 0;
    bool is_allowed;
    FILE *file;

    snprintf(path, sizeof path, "%s/price", directory);
    file = fopen(path, "a+");
    if (!file || flock(fileno(file), LOCK_EX) != 0)
        return false;
    rewind(file);
    is_allowed = fscanf(file, "%" SCNu64, &last) != 1 || token >= last;
    if (is_allowed && ftruncate(fileno(file), 0) == 0)
        fprintf(file, "%" PRIu64 " %d\n", token, price);
    fclose(file); /* unlocks */
    return is_allowed;
}

/* ---- the row ----------------------------------------------------------------------------- */

static void write_statement(char *statement, size_t size, uint64_t token, int price)
{
    snprintf(statement, size, "UPDATE price SET cents = %d, token = %" PRIu64 " WHERE item = 1 AND token <= %" PRIu64,
             price, token, token);
}

/* Runs statements with the sqlite3 command. Returns the last number it prints, or -1. */
static int run_sql(const char *statements)
{
    char command[512];
    int number = -1;
    FILE *output;

    snprintf(command, sizeof command, "sqlite3 -cmd '.timeout 5000' %s/shop.db \"%s\"", directory, statements);
    output = popen(command, "r");
    if (output && fscanf(output, "%d", &number) != 1)
        number = -1;
    if (output)
        pclose(output);
    return number;
}

/* One statement is one step. It changes a row only if the token is valid. */
static bool write_row(uint64_t token, int price)
{
    char statement[200], statements[256];

    write_statement(statement, sizeof statement, token, price);
    snprintf(statements, sizeof statements, "%s; SELECT changes();", statement);
    return run_sql(statements) == 1;
}

static bool make_table(void)
{
    return system("command -v sqlite3 >/dev/null") == 0 &&
           run_sql("CREATE TABLE price (item INTEGER PRIMARY KEY, cents INTEGER, token INTEGER);"
                   "INSERT INTO price VALUES (1, 100, 0); SELECT count(*) FROM price;") == 1;
}

/* ---- the story --------------------------------------------------------------------------- */

static int failures;

static void expect(bool is_true, const char *sentence)
{
    printf("%s %s\n", is_true ? "yes:" : "NO: ", sentence);
    fflush(stdout);
    failures += !is_true;
}

/* Owns the mutex, is stopped for longer than the lease, and then writes as if nothing had happened. */
static int be_late(bool has_table)
{
    uint64_t token = lock();

    raise(SIGSTOP);
    expect(!write_file(token, 111), "the late process's lower token is refused by the file");
    if (has_table)
        expect(!write_row(token, 111), "and by the row");
    return failures;
}

static void come_after(bool has_table)
{
    uint64_t token = lock(); /* waits for the end of the stopped owner's lease */

    expect(write_file(token, 222), "the new owner writes the file");
    if (has_table)
        expect(write_row(token, 222), "and the row");
    dmutex_unlock(&price_mutex);
}

static void remove_file(const char *name)
{
    char path[64];

    snprintf(path, sizeof path, "%s/%s", directory, name);
    unlink(path);
}

int main(void)
{
    char statement[200];
    bool has_table;
    pid_t late;
    int status;

    if (!mkdtemp(directory))
        return 1;
    has_table = make_table();
    set_up_mutex();
    late = fork();
    if (late == 0)
        exit(be_late(has_table));
    waitpid(late, &status, WUNTRACED);
    come_after(has_table);
    kill(late, SIGCONT);
    waitpid(late, &status, 0);
    failures += status != 0;
    if (!has_table) {
        write_statement(statement, sizeof statement, 7, 222);
        printf("sqlite3 is not installed; this statement would guard a row:\n    %s\n", statement);
    }
    remove_file("price");
    remove_file("shop.db");
    rmdir(directory);
    return failures ? 1 : 0;
}
