#!/bin/sh
# The screens of `dmutex top` and of a waiting `dmutex run` in a terminal of tmux, driven by keys. Speaks TAP.
#
# Run by `make check` in the build directory, if configure has found tmux.

. "$srcdir/tests/lib/tap.sh"
. "$srcdir/tests/lib/server.sh"
terminals=0
in_tmux() { tmux -S "$scratch/tmux$terminals" -f /dev/null "$@" 2>>"$scratch/tmux.log"; }
trap 'in_tmux kill-server; end_server' EXIT
start_server --port 0 --unixsocket "$scratch/s" --save '' --logfile "$scratch/log"
dmutex=$PWD/tools/dmutex
DMUTEX_URL="unix://$scratch/s?grace=off"
unset NO_COLOR DMUTEX_LOG TMUX
export DMUTEX_URL dmutex scratch
mkfifo "$scratch/go"

screen() { in_tmux capture-pane -p; }
lines() { screen | grep -c "$1"; }
# becomes EXPECTED COMMAND...: waits until the command, about the screen, prints this.
becomes()
{
    expected=$1
    shift
    tries=300
    while said=$("$@"); [ "$said" != "$expected" ]; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || { complain "$*: $said, and not $expected; the screen: $(screen)"; return 1; }
        sleep 0.1
    done
}
# shows TEXT: waits until the text is on the screen.
has_text() { screen | grep -qF -- "$1" && echo yes; }
shows() { becomes yes has_text "$1"; }
# keys KEY...: as typed by a person.
keys() { in_tmux send-keys "$@"; }
# begin COLUMNS ROWS COMMAND: in a new terminal; the command's status is shown at its end, and ENTER ends the shell.
begin()
{
    in_tmux kill-server
    terminals=$((terminals + 1))
    in_tmux new-session -d -x "$1" -y "$2" "trap : INT QUIT; $3; echo \"status \$?\"; read answer; echo \"\$answer\"; cat"
}
# hold NAME: another process holds the lock until `release`.
hold()
{
    "$dmutex" run "$1" sh -c 'echo >"$scratch/held"; read go <"$scratch/go"' &
    holder=$!
    until [ -e "$scratch/held" ]; do sleep 0.1; done
    rm "$scratch/held"
}
release()
{
    echo go >"$scratch/go"
    wait $holder
}

# ---------------------------------------------------------------------------
# top
# ---------------------------------------------------------------------------
hold screens/one
begin 120 16 '"$dmutex" top -d 0.1'
shows "1 held, 0 waiting, at least "
shows "screens/one"
shows "held"
is "the lines of the names" "$(lines "^screens/")" 1
result "top shows a lock that is held"

"$dmutex" run screens/one true &
waiter=$!
shows "1 held, 1 waiting"
shows "THE LONGEST WAITS"
shows " for screens/one: held by sh (process "
result "top shows a wait that begins, without a key"

in_tmux resize-window -x 50 -y 12
"$dmutex" run screens/one true &
other=$!
becomes 1 lines "^1 held, 2 waiting"
becomes 1 lines "^screens/"
becomes 6 lines .
result "top wraps no line when the terminal is narrow"

release
wait $waiter $other
shows "0 held, 0 waiting"
becomes 2 lines .
result "top clears what is over"

keys C-c
shows "status 130"
keys 0123456789012345678901234567890123456789012345678901234567890123456789 Enter
shows "0123456789012345678901234567890123456789"
becomes 2 lines '^01234567890123456789$'
result "top ends by ^C, and leaves a terminal that wraps lines"

# ---------------------------------------------------------------------------
# run, while it waits
# ---------------------------------------------------------------------------
hold screens/run
begin 150 6 '"$dmutex" run screens/run cat'
shows "waiting for screens/run for "
shows ", place 1 of 1: held for "
shows " by sh (process "
becomes 1 lines .
keys C-c
shows "status 130"
result "run shows place and holder in one line, and ^C ends the wait"

begin 60 6 '"$dmutex" run screens/run cat'
shows "waiting, place 1 of 1: held for "
becomes 1 lines .
result "run draws one line when the terminal is narrow"

release
becomes 0 lines waiting
keys "to the command" Enter
shows "to the command"
becomes 2 lines "^to the command$"
keys C-d
shows "status 0"
result "run wipes its line when the lock comes, and keys reach the command"

finish
