/* SPDX-License-Identifier: BSD-2-Clause */
#include "errand.h"

#include <glib.h>
#include <pthread.h>

struct errand {
    struct errand *next;
    void (*run)(void *user);
    void *user;
};

/*
 * Guards the list. It is a pthread lock, so that the main loop sees all that a thread wrote before asking, and race
 * detectors understand the order; they do not know GLib's locks.
 */
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static struct errand *first, **end = &first;

static struct errand *take(void)
{
    struct errand *errand;

    pthread_mutex_lock(&guard);
    errand = first;
    first = errand->next;
    if (!first)
        end = &first;
    pthread_mutex_unlock(&guard);
    return errand;
}

/*
 * Called once for each errand: there are as many sources as errands, so take() always finds one. Each source runs the
 * first errand in the list, which keeps the order.
 */
static gboolean on_errand(gpointer unused)
{
    struct errand *errand = take();

    (void)unused;
    errand->run(errand->user);
    g_free(errand);
    return G_SOURCE_REMOVE;
}

void errand_send(void (*run)(void *user), void *user)
{
    struct errand *errand = g_new(struct errand, 1);

    *errand = (struct errand){ .run = run, .user = user };
    pthread_mutex_lock(&guard);
    *end = errand;
    end = &errand->next;
    pthread_mutex_unlock(&guard);
    g_idle_add_full(G_PRIORITY_DEFAULT, on_errand, NULL, NULL);
}
