#!/bin/sh
# Runs the models of the protocol and their controls by SPIN; doc/design/models.md describes both.
# Speaks TAP.
#
#     run-models.sh            all of ./models (`make check-model`)
#     run-models.sh TEXT...    only the runs with one of the texts in the line
#
# Needs spin (package spin) and a C compiler at run time.  DMUTEX_TEST_LONG=1: also the runs marked "long".
# DMUTEX_MODEL_JOBS: runs at a time (2); each may take DMUTEX_MODEL_MIB (5200), the need of the largest long run, and
# DMUTEX_MODEL_SECONDS (1800).
# Two at a time stay below 8 GiB.

set -u
LC_ALL=C
export LC_ALL
here=${srcdir:+$srcdir/tests/model}
here=$(cd "${here:-$(dirname "$0")}" && pwd)
jobs=${DMUTEX_MODEL_JOBS:-2}
mib=${DMUTEX_MODEL_MIB:-5200}
seconds_at_most=${DMUTEX_MODEL_SECONDS:-1800}
cc=${CC:-cc}

for tool in spin "${cc%% *}"; do
    command -v "$tool" >/dev/null || { echo "1..0 # SKIP $tool is not installed" && exit 1; }
done

# figure N PATTERN: field N of pan's last line that matches PATTERN in the output file
figure() { sed -n "s/$2/\\1/p" "$out" | tail -1; }

# Prints pan's first complaint; a reached bound of a model is a complaint too.
complaint() { sed -n 's/^pan:[0-9]*: //p' "$out" | sed 's/ (at depth.*//' | head -1; }

# one LINE: checks a model in an own folder; prints a line without a number.
#   name | ok or trace, long or not | model | switches of spin | of the compiler | of pan | the complaint
one()
{
    IFS='|' read -r name expected model defines flags options wanted <<END
$1
END
    folder=$(mktemp -d "$scratch/XXXXXX") || exit 1
    out=$folder/out
    name=$(echo $name) expected=$(echo $expected) model=$(echo $model) wanted=$(echo $wanted)
    case $flags in *SAFETY*) : ;; *) options="-a $options" ;; esac
    case $expected in # a trace is found soon: the compiler's time counts most
        trace) flags="$flags -O0" ;;
        *) flags="-O2 $flags" ;;
    esac
    {
        cd "$folder" && spin -a $defines "$here/$model" &&
            $cc -w -DVECTORSZ=2048 -DMEMLIM="$mib" $flags -o pan pan.c &&
            timeout "$seconds_at_most" ./pan -m1000000 -w22 $options
    } >"$out" 2>&1
    found=$(complaint)
    verdict='not ok'
    case $expected in
        *trace*) echo "$found" | grep -q -- "$wanted" && [ -n "$found" ] && verdict=ok ;;
        *) grep -q 'errors: 0' "$out" && ! grep -q 'out of memory\|MEMLIM bound\|max search depth' "$out" && verdict=ok ;;
    esac
    states=$(printf '%.0f' "$(figure 1 '^ *\([0-9.e+]*\) states, stored.*')") # pan says 1.04e+08
    depth=$(figure 1 '.*depth reached \([0-9]*\).*')
    memory=$(figure 1 '^ *\([0-9.]*\).*total actual memory usage')
    seconds=$(figure 1 '.*elapsed time \([0-9.]*\) sec.*')
    echo "$verdict - $name: ${states:-0} states, depth ${depth:-0}, ${memory:-?} MiB, ${seconds:-0} s${found:+; $found}" |
        tr -s ' '
    [ "$verdict" = ok ] || sed 's/^/# /' "$out" | grep -v 'unreached\|Depth=' | head -15
    cd / && rm -rf "$folder"
}

if [ "${1:-}" = --one ]; then
    one "$2"
    exit 0
fi

scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' INT TERM
export scratch mib seconds_at_most cc srcdir

# The table, without comments; $NAME stands for the switches of a line "NAME = switches" above.
awk -v long="${DMUTEX_TEST_LONG:-}" -v words="$(printf '%s;' "$@")" '
    BEGIN { wanted = split(words, word, ";") - 1 }
    /^ *(#|$)/ { next }
    /^[A-Z_0-9]+ =/ { name = $1; sub(/^[A-Z_0-9]+ = */, ""); value[name] = expand($0); next }
    {
        line = expand($0)
        if (split(line, part, "|") < 7 || (part[2] ~ /long/ && !long)) next
        is_wanted = word[1] == ""
        for (i = 1; i <= wanted; i++) if (word[i] && index(line, word[i])) is_wanted = 1
        if (is_wanted) print line
    }
    function expand(text,   name)
    {
        while (match(text, /\$[A-Z_0-9]+/)) {
            name = substr(text, RSTART + 1, RLENGTH - 1)
            text = substr(text, 1, RSTART - 1) value[name] substr(text, RSTART + RLENGTH)
        }
        return text
    }' "$here/models" >"$scratch/table"

tr '\n' '\0' <"$scratch/table" | xargs -0 -r -n 1 -P "$jobs" sh "$0" --one |
    {
        tests=0 failed=0 sum=0
        while IFS= read -r line; do
            case $line in
                'ok - '* | 'not ok - '*) tests=$((tests + 1)) ;;
            esac
            case $line in
                'not ok - '*) failed=1 && line="not ok $tests -${line#not ok -}" ;;
                'ok - '*) line="ok $tests -${line#ok -}" ;;
            esac
            figures=$(echo "$line" | sed -n 's/^[no].*: \([0-9]*\) states, depth .*/\1/p')
            sum=$((sum + ${figures:-0}))
            echo "$line"
        done
        echo "# $sum states"
        echo "1..$tests"
        exit $failed
    }
