#!/bin/sh
# check.sh KEPT LIBRARY: abidiff's judgement of the library, against the interface that is kept in the repository. Fails on
# each change that a compiled program could notice; functions that were only added are printed, without failure.

set -eu
command -v abidiff >/dev/null || { echo "check-abi: abidiff was not found (package abigail-tools)" >&2; exit 1; }
if ! abidiff --no-show-locs --no-added-syms "$1" "$2"; then
    echo "check-abi: compiled programs would notice" >&2
    exit 1
fi
abidiff --no-show-locs "$1" "$2" || echo "check-abi: compiled programs do not notice"
