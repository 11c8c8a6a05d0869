#!/bin/sh
# debian/ agrees with the rest: version, exported functions, and a package for each installed file. Needs no debhelper.
# Speaks TAP. Run by `make check` in the build directory.

. "$srcdir/tests/lib/tap.sh"
debian=$srcdir/debian

is "the version in debian/changelog" "$(sed -n '1s/^libdmutex (\(.*\)-[0-9]*) .*/\1/p' "$debian/changelog")" "$PACKAGE_VERSION"
result "the packages have the version of the library"

sed -n 's/^ \([^ ]*\) .*/\1/p' "$debian/libdmutex0.symbols" | sort >"$scratch/listed"
$NM -D --defined-only libdmutex/.libs/libdmutex.so |
    awk '{ sub(/@@/, "@", $3); print $2 == "A" ? $3 "@" $3 : $3 }' | sort >"$scratch/exported"
diff "$scratch/listed" "$scratch/exported" | grep '^[<>]' >"$scratch/complaints"
result "debian/libdmutex0.symbols lists (<) what the library exports (>)"

# Installed as debian/rules does, but for the folder of the architecture: its place in the lists is a *.
env -u MAKEFLAGS -u MFLAGS make install DESTDIR="$scratch/root" prefix=/usr exec_prefix=/usr \
    libdir=/usr/lib/ARCH includedir=/usr/include libexecdir=/usr/libexec bindir=/usr/bin \
    datarootdir=/usr/share datadir=/usr/share mandir=/usr/share/man \
    zshcompletiondir=/usr/share/zsh/vendor-completions >"$scratch/install" 2>&1 ||
    complain "make install: $(tail -n 3 "$scratch/install")"
(cd "$scratch/root" && find . ! -type d) | sed 's/^\.\///' | sort >"$scratch/files"
[ "$(wc -l <"$scratch/files")" -gt 100 ] || complain "only $(wc -l <"$scratch/files") files are installed"
result "make install installs into another root"

# wanted FILE: prints the lists that have the file, or a folder above it.
wanted()
{
    for list in "$debian"/*.install "$debian/not-installed"; do
        while read -r pattern; do
            case $1 in
            $pattern | $pattern/*) echo "${list##*/}" ;;
            esac
        done <"$list"
    done
}

while read -r file; do
    lists=$(wanted "$file" | xargs)
    case $lists in
    "") complain "$file is in no package: add it to a debian/*.install" ;;
    *" "*) complain "$file is in several: $lists" ;;
    esac
done <"$scratch/files"
result "each installed file is in one package"

for list in "$debian"/*.install; do
    while read -r pattern; do
        while read -r file; do
            case $file in
            $pattern | $pattern/*) continue 2 ;;
            esac
        done <"$scratch/files"
        complain "${list##*/}: nothing is installed as $pattern"
    done <"$list"
done
result "each line of debian/*.install has an installed file"

finish
