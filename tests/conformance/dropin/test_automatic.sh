#!/bin/sh
# Automatic names: an initialiser that stands for one object names that object, the same from wherever the
# unit is compiled; all others are refused with a sentence, before anything is locked. Speaks TAP.
#
# Run by `make check` in the build directory; srcdir, CC, CXX and SANITIZER_CFLAGS come from there.
# No server is there, and none is started.

. "$srcdir/tests/lib/tap.sh"
include=$(cd "$srcdir/include" && pwd)
library=$PWD/libdmutex/.libs
cd "$scratch" || exit 1

export DMUTEX_URL="unix://$scratch/none" DMUTEX_ONDOWN=fail
unset DMUTEX_LOG
flags="$SANITIZER_CFLAGS -Wall -Wextra -Wpedantic -Werror -I$include -I$scratch -include dmutex/pthread.h"
libs="-L$library -Wl,-rpath,$library -ldmutex"

# tell NAME OBJECT: the object's name; if the name is refused, the answer of locking.
cat >tell.h <<'SOURCE'
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static inline void tell(const char *what, pthread_mutex_t *mutex)
{
    char name[256];
    int error = dmutex_getname_np(mutex, name, sizeof name);

    if (error)
        printf("%s: %s, lock: %s\n", what, strerrorname_np(error), strerrorname_np(pthread_mutex_lock(mutex)));
    else
        printf("%s: %s\n", what, name);
}
SOURCE

# unit FLAGS...: compiles with a group. compile FLAGS...: links with the tree's library, too.
unit()
{
    $CC -std=gnu11 $flags -DDMUTEX_GROUP='"billing"' "$@" 2>>complaints || echo "does not compile: $*" >>complaints
}
compile() { unit "$@" $libs; }

# says PROGRAM LINE...: complains unless the program prints the lines on standard output.
says()
{
    program=$1
    shift
    printf '%s\n' "$@" >wanted
    "./$program" >output 2>errors || echo "$program failed" >>complaints
    diff wanted output >>complaints
}

# complains WORDS...: complains unless the last program has written one line with each of the words.
complains()
{
    for words; do
        [ "$(grep -c "$words" errors)" -eq 1 ] || echo "not one line has: $words" >>complaints
    done
    [ "$(wc -l <errors)" -eq $# ] || { echo "other lines than asked for:" && cat errors; } >>complaints
}

# ---------------------------------------------------------------------------
# One initialiser, one object
# ---------------------------------------------------------------------------
cat >unit.c <<'SOURCE'
#include "tell.h"
static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER;
static struct { int n; pthread_mutex_t lock; } several[2] = { { 1, PTHREAD_MUTEX_INITIALIZER },
                                                              { 2, PTHREAD_MUTEX_INITIALIZER } };
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
__attribute__((__constructor__)) static void early(void) { tell("early", &first); }
int main(void)
{
    static pthread_mutex_t inner = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    char name[256] = "none";
    tell("one", &several[0].lock);
    tell("two", &several[1].lock);
    tell("inner", &inner);
    dcond_getname_np(&filled, name, sizeof name);
    puts(name);
    return 0;
}
SOURCE
compile unit.c -o unit
says unit 'early: billing/unit.c:0' 'one: billing/unit.c:1' 'two: billing/unit.c:2' \
    'inner: billing/unit.c:4' 'billing/unit.c:3'
complains
result "static objects have the names of their initialisers, before main begins"

cat >again.c <<'SOURCE'
#include "tell.h"
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int main(void)
{
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    tell("before its first use", &lock);
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    tell("once more", &lock);
    return 0;
}
SOURCE
compile again.c -o again
says again 'before its first use: billing/again.c:0' 'once more: billing/again.c:0'
complains
result "an object that is initialised again keeps its name"

cat >owner.c <<'SOURCE'
#include "tell.h"
extern pthread_mutex_t shared;
pthread_mutex_t shared = PTHREAD_MUTEX_INITIALIZER;
void tell_library(void);
void tell_library(void) { tell("library", &shared); }
SOURCE
cat >user.c <<'SOURCE'
#include "tell.h"
extern pthread_mutex_t shared;
void tell_library(void);
int main(void)
{
    tell("program", &shared);
    tell_library();
    return 0;
}
SOURCE
compile -shared -fPIC owner.c -o libowner.so
for kind in -fno-pie\ -no-pie -fpie\ -pie -fPIC\ -pie; do
    compile $kind user.c -o user -L. -Wl,-rpath,"$PWD" -lowner
    says user 'program: billing/owner.c:0' 'library: billing/owner.c:0'
    complains
done
result "a library's object is one object with the program's copy of it"

# ---------------------------------------------------------------------------
# One initialiser or name, several objects
# ---------------------------------------------------------------------------
cat >array.c <<'SOURCE'
#include "tell.h"
static pthread_mutex_t locks[3] = { [0 ... 2] = PTHREAD_MUTEX_INITIALIZER };
static pthread_mutex_t other = PTHREAD_MUTEX_INITIALIZER;
int main(void)
{
    tell("element", &locks[0]);
    tell("element", &locks[2]);
    tell("other", &other);
    return 0;
}
SOURCE
compile -Wno-pedantic array.c -o array
says array 'element: EINVAL, lock: EINVAL' 'element: EINVAL, lock: EINVAL' 'other: billing/array.c:1'
complains 'the same automatic name.*"billing/array.c:0"'
result "elements of an array that share an initialiser are refused"

mkdir -p x y
for folder in x y; do
    printf '#include "tell.h"\nstatic pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;\n%s\n%s\n' \
        "void tell_$folder(void);" "void tell_$folder(void) { tell(\"$folder\", &lock); }" >$folder/util.c
done
cat >pair.c <<'SOURCE'
void tell_x(void);
void tell_y(void);
int main(void)
{
    tell_x();
    tell_y();
    return 0;
}
SOURCE
(cd x && unit -fPIC -c util.c && mv complaints ..)
(cd y && unit -fPIC -c util.c && mv complaints ..)
compile pair.c x/util.o y/util.o -o pair
says pair 'x: EINVAL, lock: EINVAL' 'y: EINVAL, lock: EINVAL'
complains 'the same automatic name.*"billing/util.c:0"'
result "two units of one name are refused"

compile -shared y/util.o -o liby.so
compile pair.c x/util.o -o pair_and_library -L. -Wl,-rpath,"$PWD" -ly
says pair_and_library 'x: EINVAL, lock: EINVAL' 'y: EINVAL, lock: EINVAL'
complains 'the same automatic name.*"billing/util.c:0"'
result "two units of one name are refused if one of them is in a library"

(cd y && unit -DDMUTEX_UNIT='"y/util"' -c util.c && mv complaints ..)
compile pair.c x/util.o y/util.o -o pair
says pair 'x: billing/util.c:0' 'y: billing/y/util:0'
complains
result "DMUTEX_UNIT makes two names of them"

cat >places.c <<'SOURCE'
#include "tell.h"
static __thread pthread_mutex_t of_thread = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t later;
static void init(pthread_mutex_t *mutex) { *mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER; }
int main(void)
{
    pthread_mutex_t on_stack = PTHREAD_MUTEX_INITIALIZER, *on_heap = malloc(sizeof *on_heap);
    init(on_heap);
    init(&later);
    tell("stack", &on_stack);
    tell("heap", on_heap);
    tell("later", &later);
    tell("thread", &of_thread);
    pthread_mutex_init(on_heap, NULL);
    printf("%s\n", dmutex_getname_np(on_heap, (char[256]){ 0 }, 256) == ENOENT ? "anonymous" : "named");
    free(on_heap);
    return 0;
}
SOURCE
compile places.c -o places
says places 'stack: EINVAL, lock: EINVAL' 'heap: EINVAL, lock: EINVAL' 'later: EINVAL, lock: EINVAL' 'thread: EINVAL, lock: EINVAL' anonymous
complains 'for a static object.*"billing/places.c:0"' 'for a static object.*"billing/places.c:1"' \
    'for a static object.*"billing/places.c:2"'
result "objects that are not static, or are assigned, are refused once each"

# ---------------------------------------------------------------------------
# The unit's name
# ---------------------------------------------------------------------------
mkdir -p tree/sub elsewhere
printf '#include "tell.h"\nstatic pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;\n%s\n' \
    'int main(void) { tell("lock", &lock); return 0; }' >tree/sub/nm.c
from() # FOLDER FLAGS...: compiled in a folder of the tree
{
    (cd "$1" && shift && compile "$@" -o "$scratch/nm" && [ ! -s complaints ] || cat complaints >>"$scratch/complaints")
}
for path in sub/nm.c ./sub/nm.c sub/./nm.c .//sub//nm.c; do
    from tree $path
    says nm 'lock: billing/sub/nm.c:0'
done
for map in -fmacro-prefix-map="$PWD/tree/=" -ffile-prefix-map="$PWD/tree=."; do
    from elsewhere $map "$PWD/tree/sub/nm.c"
    says nm 'lock: billing/sub/nm.c:0'
done
from elsewhere -fmacro-prefix-map=../tree/= ../tree/sub/nm.c
says nm 'lock: billing/sub/nm.c:0'
complains
result "a unit has one name, however its path is written"

for path in "$PWD/tree/sub/nm.c" ../tree/sub/nm.c sub/../../tree/sub/nm.c; do
    from tree "$path"
    says nm 'lock: EINVAL, lock: EINVAL'
    complains 'the build directory'
done
result "a unit whose path depends on the folder of the build is refused"

# ---------------------------------------------------------------------------
# Modules
# ---------------------------------------------------------------------------
cat >plugin.c <<'SOURCE'
#include "tell.h"
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
void run(void);
void run(void) { tell("plugin", &lock); }
SOURCE
cat >host.c <<'SOURCE'
#include <dlfcn.h>
#include <stdio.h>
int main(void)
{
    for (int i = 0; i < 4; i++) {
        void *plugin = dlopen(i % 2 ? "./copy.so" : "./plugin.so", RTLD_NOW);
        void (*run)(void);

        *(void **)&run = dlsym(plugin, "run");
        run();
        dlclose(plugin);
    }
    return 0;
}
SOURCE
compile -shared -fPIC plugin.c -o plugin.so
cp plugin.so copy.so
compile host.c -o host
line='plugin: billing/plugin.c:0'
says host "$line" "$line" "$line" "$line"
complains
result "a plugin that is unloaded gives its names back"

printf 'int main(void) { return 0; }\n' >none.c
$CC $flags -DDMUTEX_GROUP='"billing"' none.c -o none 2>>complaints || echo "needs the library" >>complaints
./none || echo "does not run" >>complaints
result "a program without a mutex needs no library"

if [ -n "$CXX" ]; then
    cat >object.cc <<'SOURCE'
#include "tell.h"
struct queue {
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
};
static queue single;
struct made {
    pthread_mutex_t lock;
    made() { pthread_mutex_init(&lock, NULL); }
};
static made anonymous;
int main()
{
    queue *on_heap = new queue;
    tell("single", &single.lock);
    tell("heap", &on_heap->lock);
    printf("%d\n", dmutex_getname_np(&anonymous.lock, 0, 0) == EINVAL);
    delete on_heap;
    return 0;
}
SOURCE
    $CXX -std=gnu++17 $flags -DDMUTEX_GROUP='"billing"' object.cc -o object $libs 2>>complaints ||
        echo "object.cc does not compile" >>complaints
    says object 'single: billing/object.cc:0' 'heap: EINVAL, lock: EINVAL' 1
    complains 'for a static object.*"billing/object.cc:0"'
    result "members of classes: one static object has the name, others are refused"
fi

finish
