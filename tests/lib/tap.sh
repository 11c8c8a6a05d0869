# Sourced by the tests that are shell scripts. Speaks TAP.
#
#     . "$srcdir/tests/lib/tap.sh"
#     [ "$sum" -eq 3 ] || complain "one and two are $sum"
#     result "one and two are three"
#     finish
#
# $scratch is a directory that ends with the script.

set -u
LC_ALL=C
export LC_ALL
scratch=$(mktemp -d "${TMPDIR:-/tmp}/dmutex-XXXXXX") || {
    echo "Bail out! TMPDIR, or /tmp, must be a directory that this user can write to"
    exit 1
}
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
tests=0

# complain WORDS...: notes a fault, for the next result.
complain() { printf '%s\n' "$*" >>"$scratch/complaints"; }

# is WHAT VALUE EXPECTED: complains if the two differ.
is() { [ "$2" = "$3" ] || complain "$1: $2, and not $3"; }

# result SENTENCE: passed if there is no complaint.
result()
{
    tests=$((tests + 1))
    if [ -s "$scratch/complaints" ]; then
        echo "not ok $tests - $1"
        sed 's/^/# /' "$scratch/complaints"
    else
        echo "ok $tests - $1"
    fi
    : >"$scratch/complaints"
}

# note WORDS...: for readers of the log.
note() { printf '%s\n' "$*" | sed 's/^/# /'; }

# Prints the number of tests at the end, so that a test that did not run is missed.
finish()
{
    echo "1..$tests"
    exit 0
}
