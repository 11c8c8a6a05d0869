#!/bin/sh
# Error sentences: the value, the file, the reason. Speaks TAP.
#
# Run by `make check` in the build directory; srcdir, CC and SANITIZER_CFLAGS come from there.

. "$srcdir/tests/lib/tap.sh"
include=$(cd "$srcdir/include" && pwd)
library=$PWD/libdmutex/.libs
cd "$scratch" || exit 1

cat >ask.c <<'SOURCE'
#include <dmutex/dmutex.h>
#include <dmutex/testing.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static dmutex_t named = DMUTEX_INITIALIZER("sentences/one");
static sem_t told;

static void note_lost(const char *name, uint64_t token, void *user)
{
    (void)token;
    (void)user;
    if (!*name)
        sem_post(&told);
}

/* Loses a hold of a shared mutex without a name, by its longest hold. */
static int lose(void)
{
    static dmutex_t anonymous;
    dmutex_test_server_t *server;
    dmutexattr_t attr;

    sem_init(&told, 0, 0);
    if (dmutex_test_server_start(&server) != 0)
        return 1;
    dmutex_setlost_np(note_lost, NULL);
    dmutexattr_init(&attr);
    dmutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    dmutexattr_setmaxhold_np(&attr, 100);
    dmutex_init(&anonymous, &attr);
    if (dmutex_lock(&anonymous) != 0)
        return 1;
    sem_wait(&told);
    dmutex_unlock(&anonymous);
    return dmutex_test_server_stop(server);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "", *value = argc > 2 ? argv[2] : "";
    dmutexattr_t attr;
    dcondattr_t cond_attr;
    void *state;
    int locked;

    dmutexattr_init(&attr);
    dcondattr_init(&cond_attr);
    if (strcmp(what, "configure") == 0)
        dmutex_configure_np(value);
    else if (strcmp(what, "lease") == 0)
        dmutexattr_setlease_np(&attr, (unsigned)atoi(value));
    else if (strcmp(what, "type") == 0)
        dmutexattr_settype(&attr, atoi(value));
    else if (strcmp(what, "pshared") == 0)
        dcondattr_setpshared(&cond_attr, atoi(value));
    else if (strcmp(what, "islocked") == 0)
        dmutex_islocked_np(&named, &locked);
    else if (strcmp(what, "group") == 0)
        return dmutex_test_group_setup(&state);
    else if (strcmp(what, "lose") == 0)
        return lose();
    puts(dmutex_strerror_np());
    return 0;
}
SOURCE
$CC -std=gnu11 $SANITIZER_CFLAGS -Wall -Wextra -Werror -I"$include" ask.c -o ask -L"$library" -Wl,-rpath,"$library" \
    -ldmutex -pthread 2>>complaints || complain "does not compile"

# tells WORDS WORD...: complains unless the program's output has the words.
tells()
{
    words=$1
    shift
    ./ask "$@" >output 2>&1
    grep -qF -- "$words" output || complain "$*: \"$(cat output)\" does not tell \"$words\""
}

tells 'not in 1..65535: "99999"' configure redis://h:99999
tells 'option 2, "foo", is not one of connect_timeout, ' configure 'redis://127.0.0.1?grace=off&foo=1'
tells 'option 1, "Grace", is not one of connect_timeout, ' configure 'redis://me:secret@h:1?Grace=off'
tells ': option 1 is not one of connect_timeout, ' configure 'redis://me:1?s3cret=1'
tells ': option 1 is not one of connect_timeout, ' configure 'redis://me?s3cret=1@h'
tells ': option 1 is not one of connect_timeout, ' configure "redis://h?a$(printf '\033')[31m=1"
tells ' and sentinel_password_file' configure "redis://h?$(printf %040d 0)=1"
tells 'password_file "/nonexistent/file": No such file or directory' configure 'redis://h?password_file=/nonexistent/file'
: >empty
tells 'its first line is empty' configure "redis://h?password_file=$scratch/empty"
result "a URL that cannot be used is told with the part that is wrong, and why"

tells '99 ms is not in 100..3600000' lease 99
tells '17 is not in 0..' type 17
tells '2 is not in 0..1' pshared 2
result "a value that is out of range is told with its range"

export DMUTEX_URL=redis://127.0.0.1:1
tells 'Connection refused' islocked
tells 'cannot be used now' islocked
result "a server that nobody can connect to is not one that does not answer in time"

export DMUTEX_URL="unix://$scratch/none"
DMUTEX_LOG=loud tells 'DMUTEX_LOG: "loud" is not warn, info or debug' islocked
DMUTEX_ONDOWN=never tells 'DMUTEX_ONDOWN=never is ignored: it must be wait or fail' islocked
DMUTEX_ONLOST=panic tells 'DMUTEX_ONLOST=panic is ignored' islocked
result "values of variables that are not known are told"

PATH=/nonexistent DMUTEX_TEST_SERVER='' ./ask group >output 2>&1 && complain "there is a server"
grep -q 'error: dmutex_test_group_setup: ' output || complain "no reason: $(cat output)"
[ "$(wc -l <output)" -eq 1 ] || complain "more than a line: $(cat output)"
result "cmocka's group fixture tells why there is no server"

DMUTEX_LOG=warn tells 'the hold of a mutex without a name with token ' lose
result "the loss of a mutex without a name is told as one"

finish
