/* SPDX-License-Identifier: BSD-2-Clause */
/* dmutex: finds the word in a table, and runs the word's function. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <dmutex/version.h>

#include "base/attrs.h"
#include "say.h"
#include "tool.h"

static const struct word *const words[] = {
    &word_run, &word_show,   &word_list, &word_break, &word_wait,  &word_token,
    &word_top, &word_doctor, &word_acl,  &word_local, &word_names,
};

static const struct word *find(const char *name)
{
    for (size_t i = 0; i < DM_COUNT(words); i++)
        if (strcmp(words[i]->name, name) == 0)
            return words[i];
    return NULL;
}

static int print_help(FILE *to)
{
    fputs("usage: dmutex SUBCOMMAND [OPTION...] [ARGUMENT...]\n"
          "       dmutex help SUBCOMMAND\n"
          "       dmutex --version\n\n",
          to);
    for (size_t i = 0; i < DM_COUNT(words); i++)
        fprintf(to, "  %-8s %s\n", words[i]->name, words[i]->purpose);
    fputs("\nDMUTEX_URL or dmutex.conf(5) names the server.\n", to);
    return to == stdout ? 0 : TOOL_USAGE;
}

static int print_help_of(const struct word *word)
{
    printf("usage: dmutex %s %s\n\n%s\n%s%s", word->name, word->arguments, word->purpose, *word->options ? "\n" : "",
           word->options);
    return 0;
}

static bool asks_for_help(const char *argument)
{
    return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0;
}

static int help(char **argv)
{
    const struct word *word = argv[1] ? find(argv[1]) : NULL;

    if (!argv[1])
        return print_help(stdout);
    if (word)
        return print_help_of(word);
    say("unknown subcommand \"%s\"; try: dmutex help", argv[1]);
    return TOOL_USAGE;
}

/* getopt() begins its complaints with argv[0]: the word's own name. */
static int run_word(const struct word *word, int argc, char **argv)
{
    static char name[40];

    snprintf(name, sizeof name, "dmutex %s", word->name);
    argv[0] = name;
    if (argc > 1 && asks_for_help(argv[1]))
        return print_help_of(word);
    return word->run(argc, argv);
}

static int act(int argc, char **argv)
{
    const struct word *word;

    if (argc < 2)
        return print_help(stderr);
    if (strcmp(argv[1], "--version") == 0)
        return puts("dmutex " DMUTEX_VERSION_STRING) < 0 ? TOOL_OUTPUT : 0;
    if (strcmp(argv[1], "help") == 0 || asks_for_help(argv[1]))
        return help(argv + 1);
    word = find(argv[1]);
    if (word)
        return run_word(word, argc - 1, argv + 1);
    say("unknown subcommand \"%s\"; try: dmutex help", argv[1]);
    return TOOL_USAGE;
}

/* A reader of standard output that is gone, or a full disk, is told: a script must not take half a list for a list. */
int main(int argc, char **argv)
{
    int status = act(argc, argv);

    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    say("standard output: %s", strerror(errno));
    return TOOL_OUTPUT;
}
