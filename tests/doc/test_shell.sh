#!/bin/sh
# The shell of `./quickstart shell` finds the manual and its server, and leaves nothing. Speaks TAP.
#
# Run by `make check` in the build directory; the pages of the guide run in this shell, too.

. "$srcdir/tests/lib/tap.sh"
. "$srcdir/tests/doc/page.sh"

# in_shell COMMANDS: as typed in the shell; prints what the commands print.
in_shell()
{
    printf '#!/bin/sh\n{\n%s\n} >"$scratch/said" 2>&1\n' "$1" >"$scratch/typed"
    chmod +x "$scratch/typed"
    SHELL=$scratch/typed scratch=$scratch sh "$scratch/quickstart" >"$scratch/output" 2>&1
    cat "$scratch/said"
}
TMPDIR=$scratch/tmp
export TMPDIR scratch
mkdir "$TMPDIR"

# dcond_destroy is a function of the page dcond_init
if man --version 2>/dev/null | grep -q '^man [0-9]'; then
    is "the pages" "$(in_shell 'man -w 1 dmutex 7 dmutex 5 dmutex.conf 3 dcond_destroy' | sed 's|.*/||' | xargs)" \
        "dmutex.1 dmutex.7 dmutex.conf.5 dcond_init.3"
fi
is "MANPATH" "$(in_shell 'echo "${MANPATH##*[!:]}"')" ":"
result "man finds the pages, and those of the system"

is "the answer of the server" "$(in_shell 'redis-cli ping')" PONG
is "the socket" "$(in_shell 'redis-cli config get unixsocket | tail -n 1; echo "$DMUTEX_URL"' | sed 's|^unix://||; s|?.*||' |
    uniq | wc -l)" 1
is "a socket of another server" "$(in_shell 'redis-cli -s /nonexistent ping' | sed 's/\(Could not connect\).*/\1/')" \
    "Could not connect"
result "redis-cli asks the shell's server, and another server where an address says so"

DMUTEX_URL=unix:///nonexistent
export DMUTEX_URL
is "redis-cli" "$(in_shell 'command -v redis-cli')" "$(command -v redis-cli)"
is "the server" "$(in_shell 'echo "$DMUTEX_URL"')" "$DMUTEX_URL"
result "a server that is named already stays the server, and redis-cli as it is"

is "the files left behind" "$(ls -A "$TMPDIR")" ""
result "nothing is left when the shell has ended"

finish
