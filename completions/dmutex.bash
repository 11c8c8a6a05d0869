# Completion for bash: dmutex(1) and dmutex-run(1). Installed under both names.
#
# Subcommands, options and arguments come from the help of the program itself, so that there is no second list of them. Names of
# locks come from the server, by `dmutex list`, if the server answers at once.

# Prints a line for each option: its spellings, and the word for its value, if it has one.
_dmutex_options()
{
    sed -nE 's/^ +(-[^ ].*)$/\1/p' <<<"$1" | sed -E 's/   *.*//; s/,//g'
    sed -n 1p <<<"$1" | grep -oE -- '\[-[^]]*\]' | tr -d '[]' | tr '|' '\n' | grep -E -- '-[a-zA-Z]'
}

# Prints the arguments of a subcommand, in order: NAME COMMAND, or start|stop|status.
_dmutex_arguments()
{
    sed -nE '1{ s/\[(-|OPTION)[^]]*\]//g; s/^usage: [a-z-]+( [a-z]+)?//; s/[].[]//g; s/ \| /|/g; p; }' <<<"$1"
}

_dmutex_subcommands()
{
    "$1" help 2>/dev/null | sed -nE 's/^  ([a-z]+) .*/\1/p'
}

# Adds names of locks, which any client of the server may have chosen: so without `compgen -W`, which would run $(command).
_dmutex_reply_names()
{
    local name
    while IFS= read -r name; do
        [[ $name != "${COMP_WORDS[COMP_CWORD]}"* ]] || COMPREPLY+=("$(printf %q "$name")")
    done < <(timeout 1 "${COMP_WORDS[0]}" list --json 2>/dev/null | grep -oE '"name": *"[^"\\]*"' | cut -d'"' -f4)
}

# Adds the answers for one kind of value: in capitals as in the help, or a choice of words.
_dmutex_reply()
{
    local cur=${COMP_WORDS[COMP_CWORD]} signals
    case $1 in
        NAME | PATTERN) _dmutex_reply_names ;;
        SUBCOMMAND) mapfile -t COMPREPLY < <(compgen -W "$(_dmutex_subcommands "${COMP_WORDS[0]}")" -- "$cur") ;;
        SIGNAL)
            signals=$(compgen -A signal SIG | sed -n 's/^SIG\([A-Z]\)/\1/p')
            mapfile -t COMPREPLY < <(compgen -W "none $signals" -- "$cur")
            ;;
        FILE | BINARY)
            compopt -o filenames 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -f -- "$cur")
            ;;
        COMMAND) mapfile -t COMPREPLY < <(compgen -c -- "$cur") ;;
        *[a-z]*) mapfile -t COMPREPLY < <(compgen -W "${1//|/ }" -- "$cur") ;;
    esac
}

# _dmutex_complete FIRST HELP: completes a line whose options and arguments begin at FIRST.
_dmutex_complete()
{
    local cur=${COMP_WORDS[COMP_CWORD]} options kinds value= i word argument=0 is_closed=
    options=$(_dmutex_options "$2")
    read -ra kinds <<<"$(_dmutex_arguments "$2")"
    for ((i = $1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ $word == = && -n $value ]]; then
            continue # --option=value is three words for bash
        elif [[ -n $value ]]; then
            value=
        elif [[ ${kinds[argument]-} == COMMAND && $word != -* ]]; then
            _dmutex_complete_command "$i"
            return
        elif [[ $word == -- ]]; then
            is_closed=yes
        elif [[ $word == -* && -z $is_closed ]]; then
            value=$(awk -v word="$word" '{ for (i = 1; i < NF; i++) if ($i == word && $NF ~ /^[A-Z]/) print $NF }' \
                <<<"$options" | head -n 1)
        else
            ((argument++))
        fi
    done
    if [[ -n $value ]]; then
        _dmutex_reply "$value"
    elif [[ $cur == -* && -z $is_closed ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$({ grep -oE -- '(^| )--?[a-zA-Z][a-z-]*' <<<"$options"; echo --help; } | tr -d ' ' | sort -u)" -- "$cur")
    else
        _dmutex_reply "${kinds[argument]-}"
    fi
}

# The command has a completion of its own, which the package bash-completion knows to call.
_dmutex_complete_command()
{
    if declare -F _comp_command_offset >/dev/null; then
        _comp_command_offset "$1"
    elif declare -F _command_offset >/dev/null; then
        _command_offset "$1"
    else
        _dmutex_reply FILE
    fi
}

_dmutex()
{
    local program=${COMP_WORDS[0]}
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        mapfile -t COMPREPLY < <(compgen -W "$(_dmutex_subcommands "$program") help --help --version" -- "${COMP_WORDS[1]}")
    elif [[ ${COMP_WORDS[1]} == help ]]; then
        ((COMP_CWORD == 2)) && _dmutex_reply SUBCOMMAND
    else
        _dmutex_complete 2 "$("$program" help "${COMP_WORDS[1]}" 2>/dev/null)"
    fi
}

_dmutex_run()
{
    COMPREPLY=()
    _dmutex_complete 1 "$("${COMP_WORDS[0]}" --help 2>/dev/null)"
}

complete -F _dmutex dmutex
complete -F _dmutex_run dmutex-run
