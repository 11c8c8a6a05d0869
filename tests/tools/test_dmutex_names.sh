#!/bin/sh
# dmutex-names prints what the library will use, and fails on names that the library will refuse.
# Speaks TAP. Run by `make check` in the build directory; srcdir and CC come from there.

. "$srcdir/tests/lib/tap.sh"
names=$PWD/tools/dmutex-names
include=$(cd "$srcdir/include" && pwd)
cd "$scratch" || exit 1

# unit FLAGS...: compiles with automatic names.
unit()
{
    $CC -std=gnu11 -I"$include" -include dmutex/pthread.h -DDMUTEX_GROUP='"billing"' "$@" 2>>complaints ||
        complain "does not compile: $*"
}

# prints STATUS FILE LINE...: complains unless the sorted lines, with blanks for tabulators, are all.
prints()
{
    status=$1
    file=$2
    shift 2
    "$names" "$file" >output 2>errors
    is "status of $file" $? "$status"
    printf '%s\n' "$@" >wanted
    tr '\t' ' ' <output | sort | diff wanted - >>complaints
}

cat >ledger.c <<'SOURCE'
static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER;
static struct { char c; pthread_cond_t filled; } queue = { 'q', PTHREAD_COND_INITIALIZER };
static dmutex_t given = DMUTEX_INITIALIZER("a\tb\\");
static dmutex_t anonymous = DMUTEX_ANONYMOUS_INITIALIZER;
void *use(int i);
void *use(int i)
{
    static pthread_mutex_t inner = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    void *all[] = { &first, &queue, &given, &anonymous, &inner };
    return all[i];
}
SOURCE
unit -c ledger.c -o ledger.o
unit -fPIC -shared ledger.c -o ledger.so
for kind in o so; do
    inner=$(nm ledger.$kind | sed -n 's/.* \(inner[.0-9]*\)$/\1/p')
    prints 0 ledger.$kind "a\\x09b\\x5c mutex ledger.$kind given" "billing/ledger.c:0 mutex ledger.$kind first" \
        "billing/ledger.c:1 cond ledger.$kind queue+0x8" "billing/ledger.c:2 mutex ledger.$kind $inner"
done
result "an object file's and a library's objects have their names, kinds and variables"

printf 'dmutex_t red = DMUTEX_INITIALIZER("red");\n' >red.c
unit -c red.c -o "$(printf 'e\033[1m.o')"
prints 0 "$(printf 'e\033[1m.o')" "red mutex e\\x1b[1m.o red"
result "no path gives orders to a terminal"

cp ledger.so stripped.so
strip stripped.so
"$names" stripped.so | cut -f1,2 | sort >output
"$names" ledger.so | cut -f1,2 | sort | diff - output >>complaints
[ "$(wc -l <output)" -eq 4 ] || complain "not four names"
result "a stripped library has the same names"

printf 'pthread_mutex_t locks[2] = { [0 ... 1] = PTHREAD_MUTEX_INITIALIZER };\n' >array.c
unit -c array.c -o array.o
prints 1 array.o 'billing/array.c:0 mutex array.o locks' 'billing/array.c:0 mutex array.o locks+0x100'
grep -q 'two objects have this automatic name' errors || complain "no sentence: $(cat errors)"
result "two objects of one automatic name are a fault"

unit -c "$PWD/array.c" -o absolute.o
"$names" absolute.o >output 2>errors
is "status" $? 1
grep -q 'depends on the build directory' errors || complain "no sentence: $(cat errors)"
printf 'dmutex_t one = DMUTEX_INITIALIZER("/x"), two = DMUTEX_INITIALIZER("n"), three = DMUTEX_INITIALIZER("n");\n' >given.c
unit -c given.c -o given.o
prints 0 given.o '/x mutex given.o one' 'n mutex given.o three' 'n mutex given.o two'
result "a name that depends on the folder is a fault; those that are given may repeat"

# A mutex that is added above takes the number of the next: on one server the two builds exclude each other wrongly.
# Names that are given stay.
sed 's/^static pthread_mutex_t first/static pthread_mutex_t added = PTHREAD_MUTEX_INITIALIZER;\n&/; s/"a.tb..")/"other")/
    s/{ &first/{ \&added, \&first/' ledger.c >added.c
mkdir old new
cp ledger.c old/unit.c
cp added.c new/unit.c
for build in old new; do (cd $build && unit -fPIC -shared unit.c -o ../$build.so); done
"$names" --diff old.so new.so >output 2>errors
is "status" $? 1
inner=$(nm old.so | sed -n 's/.* \(inner[.0-9]*\)$/\1/p')
printf '%s\n' "billing/unit.c:0 mutex first added" "billing/unit.c:1 cond queue+0x8 -" "billing/unit.c:1 mutex - first" \
    "billing/unit.c:2 cond - queue+0x8" "billing/unit.c:2 mutex $inner -" "billing/unit.c:3 mutex - $inner" >wanted
tr '\t' ' ' <output | sort | diff wanted - >>complaints
"$names" --diff old.so old.so >output 2>>complaints
is "status of two equal builds" $? 0
is "output" "$(cat output)" ""
result "two builds in which a name means another object are told apart"

# The variables of two functions have one name, and a number: a function that is added above takes the number.
printf 'void *%s(void);\nvoid *%s(void)\n{\n    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;\n    return &lock;\n}\n' \
    f f >old/inner.c
{ sed 's/f(/g(/' old/inner.c; cat old/inner.c; } >new/inner.c
for build in old new; do (cd $build && unit -fPIC -shared inner.c -o ../$build-inner.so); done
"$names" --diff old-inner.so new-inner.so >output 2>errors
is "status" $? 1
grep -q '^billing/inner.c:0	mutex	lock' output || complain "no line: $(cat output errors)"
"$names" --diff new-inner.so new-inner.so >output 2>&1
is "status of two equal builds" $? 0
result "a variable of a function that may be another function's is told"

"$names" --diff stripped.so old.so >output 2>errors
is "status without symbols" $? 2
grep -q 'stripped.so: has no symbols' errors || complain "no sentence: $(cat errors)"
"$names" --diff old.so >output 2>&1
is "status with one file" $? 2
result "builds without symbols are not compared"

# What a terminal would obey, and what nobody sees, is written in hexadecimal.
printf 'dmutex_t one = DMUTEX_INITIALIZER("a\342\200\213b\302\233m");\n' >unseen.c
unit -c unseen.c -o unseen.o
prints 0 unseen.o 'a\xe2\x80\x8bb\xc2\x9bm mutex unseen.o one'
result "no name has bytes that a terminal obeys or does not show"

"$names" "$scratch/none" ledger.o >output 2>errors
is "status" $? 2
[ "$(wc -l <output)" -eq 4 ] || complain "the file behind the missing one is not read"
grep -q 'none: No such file' errors || complain "no reason: $(cat errors)"
"$names" ledger.c >output 2>&1
is "status of a source" $? 2
"$names" >output 2>&1
is "status without a file" $? 2
size=$(wc -c <ledger.so)
for cut in 1 17 63 64 65 $((size / 2)) $((size - 700)) $((size - 1)); do
    head -c "$cut" ledger.so >damaged
    "$names" damaged >output 2>&1
    is "status of the first $cut bytes" $? 2
done
mkfifo fifo
timeout 60 "$names" fifo ledger.o >output 2>errors
is "status with a FIFO" $? 2
[ "$(wc -l <output)" -eq 4 ] || complain "the file behind the FIFO is not read"
result "what cannot be read is told, and the rest is read"

finish
