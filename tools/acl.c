/* SPDX-License-Identifier: BSD-2-Clause */
/* dmutex acl: prints the server command that makes a user with the least rights. */
#include <stdio.h>
#include <string.h>

#include "json.h"
#include "rights.h"
#include "say.h"
#include "tool.h"

/* Asks the configured server, if there is one. */
static bool is_of_cluster(const struct dm_url *url)
{
    return url && url->kind == DM_URL_CLUSTER;
}

static const char *prefix_of(const struct dm_url *url)
{
    return url ? url->prefix : "dmutex";
}

/* The next right from *index on that a user of this server needs, the right to its database last; NULL: no more. */
static const char *next_rule(const struct dm_url *url, bool has_ops, size_t *index)
{
    while (*index < right_count) {
        const struct right *right = &rights[(*index)++];

        if ((has_ops || !right->is_for_ops) && right_is_of(right, is_of_cluster(url), url && url->wait))
            return right->rule;
    }
    return url && url->db && (*index)++ == right_count ? "+select" : NULL;
}

static void print_line(const struct dm_url *url, const char *user, bool has_ops)
{
    char channels[100];
    const char *rule;

    rights_channels(prefix_of(url), is_of_cluster(url), channels, sizeof channels);
    printf("ACL SETUSER %s on >PASSWORD resetkeys ~%s:* resetchannels &%s -@all", user, prefix_of(url), channels);
    for (size_t i = 0; (rule = next_rule(url, has_ops, &i)) != NULL;)
        printf(" %s", rule);
    puts("");
}

/* To standard error: standard output may be piped to redis-cli. */
static void print_notes(const struct dm_url *url, const char *user)
{
    fprintf(stderr,
            "To keep the user across restarts: ACL SAVE or, if the server has no aclfile, CONFIG REWRITE.\n"
            "Valkey 9.1 or later: append resetdbs db=%u, or the user may use all databases.\n",
            url ? url->db : 0);
    if (url && url->kind == DM_URL_SENTINEL)
        fprintf(stderr, "On each sentinel, if they ask for a login: ACL SETUSER %s on >PASSWORD " SENTINEL_RULES "\n",
                user);
}

static void print_json(const struct dm_url *url, const char *user, bool has_ops)
{
    struct json json = json_begin(stdout);
    const char *rule;
    char pattern[100];

    json_open(&json, NULL, '{');
    json_text(&json, "user", user);
    snprintf(pattern, sizeof pattern, "%.64s:*", prefix_of(url));
    json_text(&json, "keys", pattern);
    rights_channels(prefix_of(url), is_of_cluster(url), pattern, sizeof pattern);
    json_text(&json, "channels", pattern);
    json_open(&json, "rights", '[');
    for (size_t i = 0; (rule = next_rule(url, has_ops, &i)) != NULL;)
        json_text(&json, NULL, rule);
    json_close(&json);
    json_number(&json, "database", url ? url->db : 0);
    json_close(&json);
    json_end(&json);
}

static int run(int argc, char **argv)
{
    static const struct option options[] = {
        { "ops", no_argument, NULL, 'o' },
        { "json", no_argument, NULL, 'j' },
        { NULL, 0, NULL, 0 },
    };
    bool has_ops = false, is_json = false;
    struct dm_url *url = NULL;
    const char *user;
    int option;

    while ((option = tool_option(argc, argv, "+", options)) != -1) {
        if (option == '?')
            return TOOL_USAGE;
        has_ops |= option == 'o';
        is_json |= option == 'j';
    }
    if (argc - optind > 1)
        return tool_misused(argv, "give at most one user");
    user = argv[optind] ? argv[optind] : "app";
    if (!*user || strpbrk(user, " \t\r\n\"'\\"))
        return tool_misused(argv, "not a user name: \"%s\"", user);
    if (tool_has_url() && tool_find_url(&url) != 0)
        return TOOL_CONFIG;
    if (url && url->kind == DM_URL_POSTGRES) {
        dm_url_free(url);
        say("the configured server is PostgreSQL: dmutex sql postgresql prints the grants for a role");
        return TOOL_CONFIG;
    }
    if (url && url->kind == DM_URL_MEMCACHED) {
        say("the configured server is memcached, which has no users: let nobody else reach it");
        dm_url_free(url);
        return TOOL_CONFIG;
    }
    if (url && url->kind == DM_URL_MARIADB) {
        dm_url_free(url);
        say("the configured server is MariaDB: dmutex sql mariadb prints the grants for an account");
        return TOOL_CONFIG;
    }
    if (url && url->kind == DM_URL_ETCD) {
        say("the configured server is etcd: give the user a role, and let root run "
            "\"etcdctl role grant-permission ROLE readwrite --prefix=true /%s/\"",
            url->prefix);
        dm_url_free(url);
        return TOOL_CONFIG;
    }
    if (url && url->kind == DM_URL_ZOOKEEPER) {
        say("the configured server is ZooKeeper: with a login in the URL, the nodes below /%s are for it alone",
            url->prefix);
        dm_url_free(url);
        return TOOL_CONFIG;
    }
    if (is_json)
        print_json(url, user, has_ops);
    else
        print_line(url, user, has_ops);
    if (!is_json)
        print_notes(url, user);
    dm_url_free(url);
    return 0;
}

const struct subcommand subcommand_acl = {
    .name = "acl",
    .arguments = "[--ops] [--json] [USER]",
    .purpose = "print the server command that creates a user with the least rights",
    .options = "      --ops     include the rights that an operator needs: list, and all checks of doctor\n"
               "\n"
               "Prefix and database are those of the configured server.  The command fits its kind: a Cluster\n"
               "needs other rights, and the option wait needs one more.\n",
    .run = run,
};
