/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Three hosts on one machine: network namespaces, joined by a switch that a test can unplug.
 *
 *     hosts_begin();                         // in a group's setup; the test program is on host 0
 *     hosts_enter(1);                        // servers and actors that are started from now on are on host 1,
 *     struct server *server = server_start_with(true, NULL); // and listen on host 1's IPv6 address
 *     hosts_cut(1);                          // host 1 only reaches itself: packets are lost, no connection closes
 *     hosts_join(1);
 *
 * Unix sockets do not depend on the host: a server's `side` works everywhere.  A server restarts on its host.
 */
#ifndef TEST_HOSTS_H
#define TEST_HOSTS_H

#include <stdbool.h>

#define HOSTS_ALL 3

/* A network namespace for the calling program alone, with a loopback device; false if not permitted. */
bool hosts_isolate(void);

/* Sets the namespace's loopback device up or down; while it is down, the kernel drops every packet. */
bool hosts_set_loopback(bool is_up);

/* True if the machine permits hosts.  A program without them prints "1..0 # SKIP", which CI counts as a failure. */
bool hosts_begin(void);

/* The number of the host on which things are started; 0 without hosts, where hosts_enter() does nothing. */
int hosts_here(void);
void hosts_enter(int host);

/* Where servers listen on this host: 127.0.0.1 without hosts. */
const char *hosts_address(void);

void hosts_cut(int host);
void hosts_join(int host);

#endif
