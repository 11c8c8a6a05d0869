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

# typed TEXT: a terminal in its normal state shows the text twice: as it is typed, and by the shell's echo.
typed()
{
    keys "$1" Enter
    becomes 2 lines "^$1$"
}
keys C-c
shows "status 130"
keys 0123456789012345678901234567890123456789012345678901234567890123456789 Enter
shows "0123456789012345678901234567890123456789"
becomes 2 lines '^01234567890123456789$'
result "top ends by ^C, and leaves a terminal that wraps lines and shows what is typed"

# A usual terminal, and names and holders that are wider than half of it.
hold screens/a-name-of-a-lock-that-is-as-long-as-they-are-in-use
begin 80 24 '"$dmutex" top -d 1000'
shows "1 held, 0 waiting"
shows "   FOR  WAITING  LONGEST"
is "the row with its numbers" "$(lines '^screens/a-name-of-.*s        0 *$')" 1
keys xyz
keys " "
shows ", at least "
becomes 0 lines xyz
result "top fits 80 columns, and shows no key that is pressed"

in_tmux resize-window -x 50 -y 12
becomes 0 lines "LONGEST"
in_tmux resize-window -x 80 -y 24
becomes 1 lines "LONGEST"
result "top draws anew at once when the terminal gets another size"

keys q
shows "status 0"
typed after-q
result "top ends by q, and leaves a terminal that shows what is typed"

# A shell with jobs: a stop restores the terminal, and fg continues.
begin 80 24 'PS1="shell$ " sh -i'
keys '"$dmutex" top -d 1000' Enter
shows "1 held, 0 waiting"
keys C-z
shows "Stopped"
keys 'echo back-$((20 + 3))' Enter
shows "back-23"
is "the line as it was typed" "$(lines 'echo back-')" 1
keys fg Enter
becomes 0 lines back-23
keys xyz " "
shows ", at least "
becomes 0 lines xyz
keys q
shows 'shell$' # what is typed before is not shown
keys 'echo gone-$((20 + 3))' Enter
shows "gone-23"
is "the line as it was typed" "$(lines 'echo gone-')" 1
keys 'exit' Enter
shows "status 0"
release
result "top gives the terminal back at ^Z, and goes on by fg"

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
