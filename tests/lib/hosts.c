/* SPDX-License-Identifier: BSD-2-Clause */
#include "hosts.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "testlib.h"

/* The namespace of the switch, after those of the hosts. */
#define SWITCH HOSTS_ALL

static bool are_there;
static int namespaces[HOSTS_ALL + 1];
static int here;

/* ---- one namespace ----------------------------------------------------------------------- */

bool hosts_set_loopback(bool is_up)
{
    struct ifreq request = { .ifr_name = "lo" };
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), result;

    if (fd < 0)
        return false;
    request.ifr_flags = is_up ? IFF_UP | IFF_RUNNING : 0;
    result = ioctl(fd, SIOCSIFFLAGS, &request);
    close(fd);
    return result == 0;
}

static void write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return;
    if (write(fd, text, strlen(text)) < 0)
        perror(path);
    close(fd);
}

/* Gets a network namespace for a user without rights, as root of a user namespace. */
static bool unshare_as_user(void)
{
    char uids[64], gids[64];

    snprintf(uids, sizeof uids, "0 %d 1", (int)getuid());
    snprintf(gids, sizeof gids, "0 %d 1", (int)getgid());
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
        return false;
    write_file("/proc/self/setgroups", "deny");
    write_file("/proc/self/uid_map", uids);
    write_file("/proc/self/gid_map", gids);
    return true;
}

bool hosts_isolate(void)
{
    return (unshare(CLONE_NEWNET) == 0 || unshare_as_user()) && hosts_set_loopback(true);
}

/* ---- hosts and their switch -------------------------------------------------------------- */

static int open_namespace(void)
{
    int fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

    assert_return_code(fd, errno);
    return fd;
}

static void go_to(int place)
{
    assert_return_code(setns(namespaces[place], CLONE_NEWNET), errno);
}

/* Runs ip(8) with these arguments in a namespace. */
static void ip(int place, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void ip(int place, const char *format, ...)
{
    char command[160] = "ip ";
    va_list values;

    va_start(values, format);
    vsnprintf(command + 3, sizeof command - 3, format, values);
    va_end(values);
    go_to(place);
    assert_int_equal(system(command), 0);
    go_to(here);
}

/* nodad: the kernel first tries an address for a second, in which it cannot be bound. */
static void connect_host(int host)
{
    ip(SWITCH, "link add port%d type veth peer name wire netns /proc/%d/fd/%d", host, (int)getpid(), namespaces[host]);
    ip(SWITCH, "link set port%d up", host);
    ip(host, "address add fd77::%d/64 dev wire nodad", host + 1);
    ip(host, "link set wire up");
    hosts_join(host);
}

bool hosts_begin(void)
{
    if (!hosts_isolate() || system("ip -V >/dev/null 2>&1") != 0)
        return false;
    namespaces[0] = open_namespace();
    for (int i = 1; i <= SWITCH; i++) {
        assert_true(unshare(CLONE_NEWNET) == 0 && hosts_set_loopback(true));
        namespaces[i] = open_namespace();
    }
    ip(SWITCH, "link add switch type bridge mcast_snooping 0");
    ip(SWITCH, "link set switch up");
    for (int i = 0; i < HOSTS_ALL; i++)
        connect_host(i);
    are_there = true;
    hosts_enter(0);
    return true;
}

int hosts_here(void)
{
    return here;
}

void hosts_enter(int host)
{
    here = host;
    if (are_there)
        go_to(host);
}

const char *hosts_address(void)
{
    static const char *const addresses[HOSTS_ALL] = { "fd77::1", "fd77::2", "fd77::3" };

    return are_there ? addresses[here] : "127.0.0.1";
}

void hosts_cut(int host)
{
    ip(SWITCH, "link set port%d nomaster", host);
}

void hosts_join(int host)
{
    ip(SWITCH, "link set port%d master switch", host);
}
