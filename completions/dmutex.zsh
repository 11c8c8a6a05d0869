#compdef dmutex dmutex-run
# Completion for zsh: dmutex(1) and dmutex-run(1). Installed under both names.
#
# Subcommands, options and arguments come from the help of the program itself, so that there is no second list of them. Names of
# locks come from the server, by `dmutex list`, if the server answers at once.

# Adds the answers for one kind of value: in capitals as in the help, or a choice of words.
_dmutex_value()
{
    local -a found
    case $1 in
        NAME | PATTERN)
            found=(${(f)"$(timeout 1 dmutex list --json 2>/dev/null | grep -oE '"name": *"[^"\\]*"' | cut -d'"' -f4)"})
            compadd -a found
            ;;
        SIGNAL) compadd none ${signals[2,-3]} ;;
        FILE | BINARY) _files ;;
        *[a-z]*) compadd ${(s:|:)1} ;;
        *) _message "$1" ;;
    esac
}

# _dmutex_complete HELP: completes a line whose options and arguments begin at its second word.
_dmutex_complete()
{
    local -a lines=("${(f)1}") specs kinds
    local line names text value kind number=1
    for line in $lines; do
        [[ $line == ' '##-* ]] || continue
        line=${line##' '#}
        names=${line%%'  '*}
        text=${${line#$names}##' '#}
        value=
        [[ $names != *' '[A-Z]## ]] || value=${names##* }
        for names in ${(s:, :)names}; do
            specs+=("${names%% *}[${${text//\[/(}//\]/)}]${value:+":$value: _dmutex_value $value"}")
        done
    done
    kinds=(${=$(sed -nE '1{ s/\[(-|OPTION)[^]]*\]//g; s/^usage: [a-z-]+( [a-z]+)?//; s/[].[]//g; s/ \| /|/g; p; }' <<<"$1")})
    for kind in $kinds; do
        if [[ $kind == COMMAND ]]; then
            specs+=("*:::command: _normal")
            break
        fi
        specs+=("$number:$kind: _dmutex_value ${(q)kind}")
        ((number++))
    done
    _arguments -S -A '-*' : $specs '--help[show the help]'
}

_dmutex_subcommands()
{
    local -a found=(${(f)"$($1 help 2>/dev/null | sed -nE 's/^  ([a-z]+) +(.*)/\1:\2/p')"} 'help:show the help of a subcommand')
    _describe subcommand found
}

local program=$words[1]
if [[ $service == dmutex-run ]]; then
    _dmutex_complete "$($program --help 2>/dev/null)"
elif ((CURRENT == 2)); then
    _dmutex_subcommands $program
elif [[ $words[2] == help ]]; then
    ((CURRENT == 3)) && _dmutex_subcommands $program
else
    shift words
    ((CURRENT--))
    _dmutex_complete "$($program help $words[1] 2>/dev/null)"
fi
