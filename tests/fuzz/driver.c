/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Drives a fuzzer without libFuzzer: seeds, changed at random.  Each input depends only on DM_SEED and
 * the input's number, so a run can repeat an input:
 *
 *     tests/fuzz/test_url                      as often as `make check` does, or DM_EXECUTIONS=N
 *     DM_SEED=7 DM_AT=1234 tests/fuzz/test_url     the input with the printed number
 *     tests/fuzz/test_url FILE...              the bytes of files, as libFuzzer leaves files
 *     tests/fuzz/test_url --seeds FOLDER       writes the seeds as files, for libFuzzer to begin with
 */
#include <ctype.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "fuzz.h"

/* Limits the CPU time: taking this long for this many executions is a hang, because one takes microseconds. */
#define WATCHED 1000
#define PATIENCE_S 60

struct input {
    uint8_t bytes[FUZZ_INPUT_MAX];
    size_t length;
};

static uint64_t seed, at; /* the input being executed */

/* ---- chance ------------------------------------------------------------------------------ */

static uint64_t random_state;

static uint64_t random_word(void)
{
    uint64_t word = random_state += UINT64_C(0x9e3779b97f4a7c15);

    word = (word ^ (word >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    word = (word ^ (word >> 27)) * UINT64_C(0x94d049bb133111eb);
    return word ^ (word >> 31);
}

static size_t below(size_t limit)
{
    return limit ? (size_t)(random_word() % limit) : 0;
}

static const char *pick(const char *const *texts)
{
    size_t count = 0;

    while (texts[count])
        count++;
    return count ? texts[below(count)] : "";
}

/* ---- changes ----------------------------------------------------------------------------- */

/* Replaces a range with other bytes, as far as there is room. */
static void replace(struct input *input, size_t from, size_t erased, const void *bytes, size_t length)
{
    size_t behind = input->length - from - erased;

    if (from + length + behind > FUZZ_INPUT_MAX)
        return;
    memmove(input->bytes + from + length, input->bytes + from + erased, behind);
    memcpy(input->bytes + from, bytes, length);
    input->length = from + length + behind;
}

static void change_bit(struct input *input)
{
    if (input->length)
        input->bytes[below(input->length)] ^= (uint8_t)(1u << below(8));
}

static void change_byte(struct input *input)
{
    static const char telling[] = "\0\xff\x80\n\r\t :;=%@/+-*$,.~\\\"'09azAZ";

    if (input->length)
        input->bytes[below(input->length)] = (uint8_t)telling[below(sizeof telling - 1)];
}

static void erase(struct input *input)
{
    size_t from = below(input->length), most = input->length - from;

    replace(input, from, below((most < 16 ? most : 16) + 1), "", 0);
}

static void cut_off(struct input *input)
{
    input->length = below(input->length + 1);
}

static void repeat(struct input *input)
{
    struct input copy = *input;
    size_t from = below(copy.length), most = copy.length - from;

    replace(input, below(input->length + 1), 0, copy.bytes + from, below(most + 1));
}

static void put_noise(struct input *input)
{
    uint8_t noise[256];
    size_t length = below(sizeof noise);

    for (size_t i = 0; i < length; i++)
        noise[i] = (uint8_t)random_word();
    replace(input, below(input->length + 1), 0, noise, length);
}

static void put_word(struct input *input)
{
    const char *word = pick(fuzzer.words);
    size_t from = below(input->length + 1), left = input->length - from, length = strlen(word);

    replace(input, from, below(2) && length <= left ? length : 0, word, length);
}

/* Replaces the rest by the rest of another seed. */
static void splice(struct input *input)
{
    const char *other = pick(fuzzer.seeds);
    size_t length = strlen(other), from = below(length + 1), at_byte = below(input->length + 1);

    replace(input, at_byte, input->length - at_byte, other + from, length - from);
}

static void change_number(struct input *input)
{
    static const char *const numbers[] = { "0",
                                           "1",
                                           "-1",
                                           "16",
                                           "255",
                                           "65536",
                                           "4294967296",
                                           "2147483647",
                                           "9007199254740993",
                                           "9223372036854775807",
                                           "9223372036854775808",
                                           "9999999999999999999",
                                           "18446744073709551616",
                                           "1e9",
                                           "007",
                                           NULL };
    const char *number = pick(numbers);
    size_t from = below(input->length), to;

    while (from < input->length && !isdigit(input->bytes[from]))
        from++;
    to = from;
    while (to < input->length && isdigit(input->bytes[to]))
        to++;
    replace(input, from, to - from, number, strlen(number));
}

static void make_input(struct input *input)
{
    static void (*const changes[])(struct input *) = { change_bit, change_byte, change_number, erase,    cut_off,
                                                       repeat,     splice,      put_word,      put_word, put_word };
    const char *begin;
    size_t count;

    random_state = (seed << 40) + at * UINT64_C(0x2545f4914f6cdd1d);
    begin = pick(fuzzer.seeds);
    input->length = 0;
    replace(input, 0, 0, begin, strlen(begin));
    count = below(8);
    if (!fuzzer.words[0] || below(16) == 0)
        put_noise(input);
    for (size_t i = 0; i < count; i++)
        changes[below(sizeof changes / sizeof changes[0])](input);
}

/* ---- executions -------------------------------------------------------------------------- */

static void tell_where(void)
{
    char line[160];
    int length = snprintf(line, sizeof line, "# %s: DM_SEED=%" PRIu64 " DM_AT=%" PRIu64 "\n", fuzzer.name, seed, at);

    if (write(STDERR_FILENO, line, (size_t)length) < 0)
        _exit(3);
}

static void give_up(int number)
{
    tell_where();
    signal(number, SIG_DFL);
    raise(number);
}

/* A sanitizer ends the program with its own function, which first calls the callback. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void watch(void)
{
    static const int numbers[] = { SIGABRT, SIGPROF, SIGBUS, SIGFPE, SIGILL, SIGSEGV };

    if (__sanitizer_set_death_callback)
        __sanitizer_set_death_callback(tell_where);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (!__sanitizer_set_death_callback || numbers[i] == SIGPROF || numbers[i] == SIGABRT)
            signal(numbers[i], give_up);
    }
}

static void execute(bool is_shown)
{
    struct input input;

    make_input(&input);
    if (is_shown) {
        fwrite(input.bytes, 1, input.length, stdout);
        fflush(stdout);
    }
    LLVMFuzzerTestOneInput(input.bytes, input.length);
}

static uint64_t number_from(const char *variable, uint64_t usual)
{
    const char *said = getenv(variable);

    return said && *said ? strtoull(said, NULL, 10) : usual;
}

/* A sanitizer looks for other errors, and slows the program down. */
#if defined __SANITIZE_THREAD__ || defined __SANITIZE_ADDRESS__
#define SHARE 8
#else
#define SHARE 1
#endif

static void execute_all(void)
{
    const char *is_long = getenv("DMUTEX_TEST_LONG");
    uint64_t count = number_from("DM_EXECUTIONS", is_long && *is_long ? fuzzer.many : fuzzer.usual / SHARE);

    printf("1..1\n");
    for (at = 0; at < count; at++) {
        if (at % WATCHED == 0)
            setitimer(ITIMER_PROF, &(struct itimerval){ .it_value.tv_sec = PATIENCE_S }, NULL);
        execute(false);
    }
    printf("# %" PRIu64 " executions from DM_SEED=%" PRIu64 "\nok 1 - test_%s_is_well_whatever_the_bytes\n", count,
           seed, fuzzer.name);
}

/* ---- files ------------------------------------------------------------------------------- */

static void execute_file(const char *path)
{
    struct input input;
    FILE *file = fopen(path, "r");

    must(file);
    input.length = fread(input.bytes, 1, sizeof input.bytes, file);
    fclose(file);
    LLVMFuzzerTestOneInput(input.bytes, input.length);
}

static void write_seeds(const char *folder)
{
    for (size_t i = 0; fuzzer.seeds[i]; i++) {
        char path[4096];
        FILE *file;

        snprintf(path, sizeof path, "%s/%s-%zu", folder, fuzzer.name, i);
        file = fopen(path, "w");
        must(file && fputs(fuzzer.seeds[i], file) >= 0 && fclose(file) == 0);
    }
}

int main(int argc, char **argv)
{
    seed = number_from("DM_SEED", 1);
    watch();
    if (argc == 3 && strcmp(argv[1], "--seeds") == 0) {
        write_seeds(argv[2]);
    } else if (argc > 1) {
        for (int i = 1; i < argc; i++)
            execute_file(argv[i]);
    } else if (getenv("DM_AT")) {
        at = number_from("DM_AT", 0);
        execute(true);
    } else {
        execute_all();
    }
    return 0;
}
