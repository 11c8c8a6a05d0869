/* SPDX-License-Identifier: BSD-2-Clause */
#include "ask.h"

#include <string.h>

#include <dmutex/dmutex.h>

#include "config/conffile.h"
#include "refuse.h"
#include "shared/url_file.h"

/* Hides everything up to the last '@'. An '@' in the options hides too much, never too little. */
char *ask_describe(const char *url)
{
    const char *scheme_end = strstr(url, "://"), *at = strrchr(url, '@');

    if (!scheme_end || !at || at < scheme_end)
        return g_strdup(url);
    return g_strdup_printf("%.*s***%s", (int)(scheme_end + 3 - url), url, at);
}

/* A password file (password_file=) is no secret: its path may be in the environment. */
bool ask_is_secret(const char *url)
{
    const char *scheme_end = strstr(url, "://"), *at = strrchr(url, '@');
    const char *user = scheme_end ? scheme_end + 3 : url;

    return scheme_end && at && at > user && memchr(user, ':', (size_t)(at - user));
}

/* An outer dmutex-run has left the URL in a file. */
static bool read_file(struct plan *plan, const char *path, GError **error)
{
    const char *reason;
    char url[URL_ROOM];

    if (!url_file_read(path, url, &reason))
        return refuse(error, REFUSE_CONFIG, URL_FILE_VARIABLE ": %s: %s", path, reason);
    plan->url = g_strdup(url);
    plan->url_from = g_strdup(URL_FILE_VARIABLE);
    plan->url_file = g_strdup(path);
    return true;
}

/*
 * dmutex.conf(5), which the library reads, too. Its path is kept, because a password in Url= is passed on through the
 * file and not the environment (set_server()). The path is absolute; config/conffile.c makes it so.
 */
static bool read_conffile(struct plan *plan, GError **error)
{
    g_autofree struct dm_conffile *file = g_new(struct dm_conffile, 1);
    char reason[DM_CONFFILE_REASON_ROOM];

    if (!dm_conffile_read_all(file, reason))
        return refuse(error, REFUSE_CONFIG, "%s", reason);
    if (*file->url) {
        plan->url = g_strdup(file->url);
        plan->url_from = g_strdup_printf("%s: [server] Url", file->url_from);
        plan->url_file = g_strdup(file->url_from);
    }
    return true;
}

/*
 * First the preload configuration, then DMUTEX_URL, the file of an outer dmutex-run, dmutex.conf(5). The first that
 * exists counts. A file that cannot be used is a refusal, and no other server is tried, because two programs on two
 * servers do not exclude each other.
 */
bool ask_configure(struct plan *plan, GError **error)
{
    const char *environment = g_getenv("DMUTEX_URL"), *file = g_getenv(URL_FILE_VARIABLE);

    if (!plan->url && environment && *environment) {
        plan->url = g_strdup(environment);
        plan->url_from = g_strdup("DMUTEX_URL");
    } else if (!plan->url && file && !read_file(plan, file, error)) {
        return false;
    }
    if (!plan->url && !read_conffile(plan, error))
        return false;
    if (!plan->url)
        return refuse(error, REFUSE_CONFIG,
                      "no server is configured: write Url=redis://HOST into [server] of the configuration, or set "
                      "DMUTEX_URL");
    if (dmutex_configure_np(plan->url) != 0)
        return refuse(error, REFUSE_CONFIG, "%s: %s", plan->url_from, dmutex_strerror_np());
    return true;
}

/*
 * Asks about the first rule's name, because the server may give its user rights for some groups of names only. It
 * looks, and never locks. It starts the library's thread in this process, which execve() ends together with its
 * sockets.
 */
bool ask_server(const struct plan *plan, GError **error)
{
    g_autofree char *described = ask_describe(plan->url);
    char name[PLAN_NAME_ROOM] = "dmutex-run/check";
    bool has_rules = plan_count(plan) > 0;
    dmutex_t mutex;
    int is_locked;

    if ((has_rules && !plan_example_name(&plan_at(plan, 0)->rule, name)) || dmutex_init_np(&mutex, name, NULL) != 0)
        return refuse(error, REFUSE_CONFIG, "%s", dmutex_strerror_np());
    if (dmutex_islocked_np(&mutex, &is_locked) == 0)
        return true;
    return refuse(error, REFUSE_DOWN, "the server %s (%s) cannot be used: %s", described, plan->url_from,
                  dmutex_strerror_np());
}

bool ask_is_needed(const struct plan *plan)
{
    for (unsigned i = 0; i < plan_count(plan); i++)
        if (plan_at(plan, i)->rule.on_down == DOWN_FAIL)
            return true;
    return false;
}
