#!/bin/sh
# Completion in a real bash, and in zsh where it is installed, from the help of the programs that were just built.
# Speaks TAP. Run by `make check` in the build directory.

. "$srcdir/tests/lib/tap.sh"
bash=$(command -v bash)
if [ -z "$bash" ]; then
    echo "1..0 # SKIP bash is not installed"
    exit 0
fi
completions=$(cd "$srcdir/completions" && pwd)
PATH=$PWD/tools:$PWD/preload/here:$PATH
export PATH
unset BASH_ENV
cd "$scratch" || exit 1

# answers WORD...: what bash offers for the last word, in one line.
cat >answers.bash <<'SCRIPT'
. "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
COMPREPLY=()
specification=$(complete -p "$1") || exit
function=${specification#*-F }
"${function%% *}" "$1"
printf '%s\n' "${COMPREPLY[@]}"
SCRIPT
# Once: a command that is installed, too, is found twice.
answers() { "$bash" --norc --noprofile answers.bash "$completions/dmutex.bash" "$@" 2>>complaints | sort -u | xargs; }
offers() { is "$*" "$(answers "$@")" "$expected"; }

# ---------------------------------------------------------------------------
# Subcommands
# ---------------------------------------------------------------------------
subcommands=$(dmutex help | sed -n 's/^  \([a-z]*\) .*/\1/p')
[ "$(echo "$subcommands" | wc -w)" -ge 1 ] || complain "dmutex help lists no subcommand"
expected=$(printf '%s\n' $subcommands help --help --version | sort | xargs)
offers dmutex ""
expected=run
offers dmutex ru
expected=$(printf '%s\n' $subcommands | sort | xargs)
offers dmutex help ""
expected=
offers dmutex nonsense ""
result "the subcommands are those of dmutex help"

# ---------------------------------------------------------------------------
# Options: each one that the help has, of each subcommand
# ---------------------------------------------------------------------------
for subcommand in $subcommands; do
    offered=" $(answers dmutex "$subcommand" -) "
    for option in $(dmutex help "$subcommand" | sed -n '1p; /^ *-/p' | sed 's/^\( *-.*[^ ]\)   *.*/\1/' | grep -oE '(^|[[ ])--?[a-zA-Z][a-z-]*' | tr -d '[ '); do
        case $offered in
        *" $option "*) ;;
        *) complain "dmutex $subcommand: $option is not offered, but$offered" ;;
        esac
    done
done
expected="--lease"
offers dmutex run --l
expected=
offers dmutex run -- --l
expected="--check --config --dry-run --help --holders --list --map --output --quiet --verbose --version"
offers dmutex-run --
result "the options are those of the help"

# ---------------------------------------------------------------------------
# Values of options, and the other arguments
# ---------------------------------------------------------------------------
: >file.conf
expected="KILL"
offers dmutex run --on-lost KI
offers dmutex run -n --on-lost = KI
expected="none"
offers dmutex run --on-lost no
expected=
offers dmutex run --lease ""
expected=file.conf
offers dmutex-run -c fil
offers dmutex-run --output fil
expected=dmutex-names
offers dmutex run -n some/name dmutex-n
offers dmutex run -w 5 some/name -- dmutex-n
offers dmutex-run dmutex-n
offers dmutex-run -e "a => b" -- dmutex-n
expected=file.conf
offers dmutex run some/name cat fil
offers dmutex-run -v cat fil
offers dmutex names fil
expected="start status stop"
offers dmutex local ""
expected=status
offers dmutex local --json stat
result "signals, files, commands and the arguments of commands are offered in their places"

# ---------------------------------------------------------------------------
# Names: those that `dmutex list` has; any client of the server may have chosen them
# ---------------------------------------------------------------------------
mkdir stub
cat >stub/dmutex <<SCRIPT
#!/bin/sh
[ "\$1" = list ] || exec $(command -v dmutex) "\$@"
echo '{"locks":[{"name":"cron/report"},{"name": "cron/\$(touch harm)"},{"name":"billing/a b"}]}'
SCRIPT
chmod +x stub/dmutex
PATH=$PWD/stub:$PATH
"$bash" --norc --noprofile answers.bash "$completions/dmutex.bash" dmutex run cron/ >offered
is "offered for cron/" "$(xargs -d '\n' <offered)" 'cron/report cron/\$\(touch\ harm\)'
"$bash" --norc --noprofile answers.bash "$completions/dmutex.bash" dmutex run b >offered
is "offered for b" "$(cat offered)" 'billing/a\ b'
[ ! -e harm ] || complain "a command in a name was run"
result "names of locks are offered, quoted"

# ---------------------------------------------------------------------------
# Keys, typed into an interactive shell on a terminal
# ---------------------------------------------------------------------------
cat >rc <<SCRIPT
. $completions/dmutex.bash
dmutex() { [ "\$1" = run ] && echo "<\$*>" >>typed || command dmutex "\$@"; }
bind 'set enable-bracketed-paste off'
SCRIPT
if script -qec true /dev/null >/dev/null 2>&1; then # there is a terminal
    printf 'dmutex ru\t--on-l\tKIL\tcron/re\tcat fil\t\nexit\n' |
        TERM=dumb timeout 60 script -qec "$bash --noprofile --rcfile rc -i" /dev/null >session 2>&1
    grep -q . typed || complain "nothing was typed: $(cat session)"
    is "typed" "$(cat typed 2>/dev/null)" "<run --on-lost KILL cron/report cat file.conf>"
    result "the tabulator completes in an interactive shell"
fi

# ---------------------------------------------------------------------------
# zsh
# ---------------------------------------------------------------------------
if command -v zsh >/dev/null; then
    mkdir functions
    cp "$completions/dmutex.zsh" functions/_dmutex
    cat >rc.zsh <<'SCRIPT'
fpath=($PWD/functions $fpath)
autoload -Uz compinit && compinit -u -D
dmutex() { [[ $1 == run ]] && print -r "<$*>" >>typed.zsh || command dmutex "$@"; }
dmutex-run() { [[ $1 == --help ]] && command dmutex-run --help || print -r "<$*>" >>typed.zsh; }
PS1='ready>'
SCRIPT
    cat >keys.zsh <<'SCRIPT'
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "source $PWD/rc.zsh"
for line in "dmutex ru"$'\t'"--on-l"$'\t'"KIL"$'\t'"cron/re"$'\t'"cat fil"$'\t' "dmutex-run --hold"$'\t' "dmutex run -n local/x dmutex run --on-l"$'\t' "dmutex-run dmutex loc"$'\t'"stat"$'\t' "dmutex-run cat fil"$'\t'; do
    zpty -w shell "$line"
done
zpty -w shell exit
while zpty -r shell chunk; do print -r -- "$chunk"; done
SCRIPT
    TERM=dumb timeout 60 zsh -f keys.zsh >session 2>&1 </dev/null
    printf '%s\n' '<run --on-lost KILL cron/report cat file.conf>' '<--holders>' '<run -n local/x dmutex run --on-lost>' '<dmutex local status>' '<cat file.conf>' >wanted
    diff wanted typed.zsh >>complaints 2>&1 || cat session >>complaints
    result "the tabulator completes in zsh"
fi

finish
