/* SPDX-License-Identifier: BSD-2-Clause */
/* dmutex-names: dmutex(1)'s subcommand `names` as a program of its own, for Makefiles. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <dmutex/version.h>

#include "names.h"

static int print_usage(FILE *to, int status)
{
    fputs("usage: dmutex-names FILE...\n       dmutex-names --diff OLD NEW\n       dmutex-names --version\n"
          "\n"
          "List the names of the static initialisers in programs, libraries or object files, or compare the\n"
          "automatic names of two builds.\n"
          "Exit status: 1 if a name cannot be used or belongs to another object in the new build;\n"
          "2 if a file cannot be read.\n",
          to);
    return status;
}

int main(int argc, char **argv)
{
    int result;

    if (argc == 2 && strcmp(argv[1], "--version") == 0)
        return puts("dmutex-names " DMUTEX_VERSION_STRING) < 0;
    if (argc == 2 && strcmp(argv[1], "--help") == 0)
        return print_usage(stdout, 0);
    if (argc == 4 && strcmp(argv[1], "--diff") == 0)
        result = names_diff("dmutex-names", argv[2], argv[3], NULL);
    else if (argc < 2 || argv[1][0] == '-')
        return print_usage(stderr, NAMES_TROUBLE);
    else
        result = names_print("dmutex-names", argv + 1, NULL);
    if (fflush(stdout) == 0)
        return result;
    fprintf(stderr, "dmutex-names: standard output: %s\n", strerror(errno));
    return NAMES_TROUBLE;
}
