/* SPDX-License-Identifier: BSD-2-Clause */
#include "options.h"

#include <getopt.h>
#include <stdio.h>

#include "refuse.h"

/* Above all characters, so that no long option is mistaken for a letter. */
enum { OUTPUT = 256, LIST, CHECK, DRY_RUN, HOLDERS, VERSION };

static const struct option long_options[] = {
    { "config", required_argument, NULL, 'c' }, { "map", required_argument, NULL, 'e' },
    { "list", no_argument, NULL, LIST },        { "output", required_argument, NULL, OUTPUT },
    { "check", no_argument, NULL, CHECK },      { "dry-run", no_argument, NULL, DRY_RUN },
    { "holders", no_argument, NULL, HOLDERS },  { "verbose", no_argument, NULL, 'v' },
    { "quiet", no_argument, NULL, 'q' },        { "help", no_argument, NULL, 'h' },
    { "version", no_argument, NULL, VERSION },  { NULL, 0, NULL, 0 },
};

void options_print_help(void)
{
    puts("usage: dmutex-run [OPTION...] [--] COMMAND [ARGUMENT...]\n"
         "\n"
         "Run a command, and make those of its mutexes and lock files that rules name work across hosts.\n"
         "\n"
         "  -c, --config FILE   read this configuration instead of DMUTEX_CONF,\n"
         "                      ~/.config/dmutex/preload.conf or /etc/dmutex/preload.conf\n"
         "  -e, --map RULE      add a rule before all others: 'flock:/run/lock/*.lock => cron/%b'\n"
         "      --list          run the command, then print a rule for each lock that it used\n"
         "      --output FILE   print them to this file, not to standard error\n"
         "      --check         check the rules and the server; do not run the command\n"
         "      --dry-run       print what would be run\n"
         "      --holders       print the lock files that this user's processes on this host have locked\n"
         "  -v, --verbose       say what it does\n"
         "  -q, --quiet         no warnings\n"
         "  -h, --help          print this help\n"
         "      --version       print the version\n"
         "\n"
         "Exit status: the command's; 64 wrong usage, 69 server not usable, 78 wrong configuration,\n"
         "126 the rules could have no effect in this command, 127 no such command.");
}

/*
 * False if getopt has reported an error, in the words that all programs use. Of several actions the last counts, and so
 * it is with -v and -q.
 */
static bool take(struct options *options, int option)
{
    switch (option) {
    case 'c':
        options->config = optarg;
        return true;
    case 'e':
        g_ptr_array_add(options->map, optarg);
        return true;
    case 'v':
        say_level = SAY_ALL;
        return true;
    case 'q':
        say_level = SAY_ERRORS;
        return true;
    case 'h':
        options->action = ACTION_HELP;
        return true;
    case OUTPUT:
        options->output = optarg;
        return true;
    case LIST:
        options->action = ACTION_LIST;
        return true;
    case CHECK:
        options->action = ACTION_CHECK;
        return true;
    case DRY_RUN:
        options->action = ACTION_DRY_RUN;
        return true;
    case HOLDERS:
        options->action = ACTION_HOLDERS;
        return true;
    case VERSION:
        options->action = ACTION_VERSION;
        return true;
    default:
        return false;
    }
}

/* --check can do with less: the configuration and the server. */
static bool needs_command(enum action action)
{
    return action == ACTION_RUN || action == ACTION_LIST || action == ACTION_DRY_RUN;
}

/*
 * Nothing is copied: the command's arguments go to execve() as given. A missing command is refused before any file is
 * read.
 */
bool options_read(int argc, char **argv, struct options *ret_options, GError **error)
{
    int option;

    *ret_options = (struct options){ .map = g_ptr_array_new() };
    /* "+": options end where the command begins; what follows belongs to the command. */
    while ((option = getopt_long(argc, argv, "+c:e:vqh", long_options, NULL)) != -1)
        if (!take(ret_options, option))
            return refuse(error, REFUSE_USAGE, "try dmutex-run --help");
    ret_options->command = argv + optind;
    if (!argv[optind] && needs_command(ret_options->action))
        return refuse(error, REFUSE_USAGE, "give a command; try dmutex-run --help");
    if (ret_options->output && ret_options->action != ACTION_LIST)
        return refuse(error, REFUSE_USAGE, "--output is for --list");
    return true;
}

void options_clear(struct options *options)
{
    g_ptr_array_unref(options->map);
}
