#!/bin/sh
# Prints the interface of the library, for programs that are compiled already: the exported functions with their
# versions, the declarations and constants of the public headers, and the sizes of the public types.
#
# Run in the build directory; srcdir, CC and NM come from there. <dmutex/pthread.h> defines no objects itself.

set -eu
LC_ALL=C
export LC_ALL
headers='<dmutex/dmutex.h> <dmutex/testing.h>'
scratch=$(mktemp -d "${TMPDIR:-/tmp}/dmutex-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
printf '#include %s\n' $headers >"$scratch/all.c"
compile() { $CC -std=c11 -I"$srcdir/include" "$@"; }

# Exported functions, and the version of each.
$NM -D --defined-only libdmutex/.libs/libdmutex.so | awk '$2 != "A" { print "symbol " $3 }' | sort

# Declarations: only lines from our headers, one declaration a line, without attributes.
compile -E "$scratch/all.c" | awk '
    /^# [0-9]+ "/ { is_ours = $3 ~ /\/dmutex\/[a-z]+\.h"$/; next }
    is_ours { text = text " " $0 }
    END {
        gsub(/__attribute__ *\(\(__[a-z]+__(\("?[a-z0-9]+"?\))?\)\)/, "", text)
        gsub(/[ \t]+/, " ", text)
        for (i = 1; i <= length(text); i++) {
            c = substr(text, i, 1)
            depth += (c == "{") - (c == "}")
            line = line c
            if (c == ";" && depth == 0) {
                sub(/^ +/, "", line)
                print "declaration " line
                line = ""
            }
        }
    }' | sort | tee "$scratch/declarations"

# Constants and initialisers: programs have their values inside.
compile -E -dM "$scratch/all.c" | grep -E '^#define D(MUTEX|COND)_[A-Z]' |
    grep -vE '^#define DMUTEX_([A-Z]+_H|VERSION_[A-Z]+|API|ALIGNED|BEGIN_DECLS|END_DECLS)\>' |
    tr -s ' \t' ' ' | sed 's/^#define/macro/' | sort

# Sizes of the types that are declared with their members.
{
    cat "$scratch/all.c"
    printf '%s\n' '#include <stdio.h>' 'int main(void)' '{'
    sed -n 's/^declaration typedef struct .*} \([a-z_]*\);$/\1/p' "$scratch/declarations" | while read -r type; do
        printf '    printf("size %s %%zu, aligned to %%zu\\n", sizeof(%s), _Alignof(%s));\n' "$type" "$type" "$type"
    done
    printf '%s\n' '    return 0;' '}'
} >"$scratch/sizes.c"
compile -o "$scratch/sizes" "$scratch/sizes.c"
"$scratch/sizes"
