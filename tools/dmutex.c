/* SPDX-License-Identifier: BSD-2-Clause */
/* dmutex: looks the subcommand up in a table, and runs its function. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <dmutex/version.h>

#include "base/attrs.h"
#include "say.h"
#include "tool.h"

static const struct subcommand *const subcommands[] = {
    &subcommand_run, &subcommand_show,   &subcommand_list, &subcommand_break, &subcommand_wait,  &subcommand_token,
    &subcommand_top, &subcommand_doctor, &subcommand_acl,  &subcommand_sql,   &subcommand_local, &subcommand_names,
};

static const struct subcommand *find(const char *name)
{
    for (size_t i = 0; i < DM_COUNT(subcommands); i++)
        if (strcmp(subcommands[i]->name, name) == 0)
            return subcommands[i];
    return NULL;
}

static int print_help(FILE *to)
{
    fputs("usage: dmutex SUBCOMMAND [OPTION...] [ARGUMENT...]\n"
          "       dmutex help SUBCOMMAND\n"
          "       dmutex --version\n\n",
          to);
    for (size_t i = 0; i < DM_COUNT(subcommands); i++)
        fprintf(to, "  %-8s %s\n", subcommands[i]->name, subcommands[i]->purpose);
    fputs("\nDMUTEX_URL or dmutex.conf(5) names the server.\n", to);
    return to == stdout ? 0 : TOOL_USAGE;
}

static int print_help_of(const struct subcommand *subcommand)
{
    printf("usage: dmutex %s %s\n\n%s\n%s%s", subcommand->name, subcommand->arguments, subcommand->purpose,
           *subcommand->options ? "\n" : "", subcommand->options);
    return 0;
}

static bool asks_for_help(const char *argument)
{
    return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0;
}

static int help(char **argv)
{
    const struct subcommand *subcommand = argv[1] ? find(argv[1]) : NULL;

    if (!argv[1])
        return print_help(stdout);
    if (subcommand)
        return print_help_of(subcommand);
    say("unknown subcommand \"%s\"; try: dmutex help", argv[1]);
    return TOOL_USAGE;
}

/* getopt() begins its error messages with argv[0], so that becomes the subcommand's name. */
static int run_subcommand(const struct subcommand *subcommand, int argc, char **argv)
{
    static char name[40];

    snprintf(name, sizeof name, "dmutex %s", subcommand->name);
    argv[0] = name;
    if (argc > 1 && asks_for_help(argv[1]))
        return print_help_of(subcommand);
    return subcommand->run(argc, argv);
}

static int act(int argc, char **argv)
{
    const struct subcommand *subcommand;

    if (argc < 2)
        return print_help(stderr);
    if (strcmp(argv[1], "--version") == 0)
        return puts("dmutex " DMUTEX_VERSION_STRING) < 0 ? TOOL_OUTPUT : 0;
    if (strcmp(argv[1], "help") == 0 || asks_for_help(argv[1]))
        return help(argv + 1);
    subcommand = find(argv[1]);
    if (subcommand)
        return run_subcommand(subcommand, argc - 1, argv + 1);
    say("unknown subcommand \"%s\"; try: dmutex help", argv[1]);
    return TOOL_USAGE;
}

/* Fails if standard output is closed or the disk is full: a script must not take half a list for the whole. */
int main(int argc, char **argv)
{
    int status = act(argc, argv);

    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    say("standard output: %s", strerror(errno));
    return TOOL_OUTPUT;
}
