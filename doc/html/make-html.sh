#!/bin/sh
# Makes the manual as one tree of HTML: manual pages by mandoc, markdown pages by cmark-gfm, and an index.
#
#     make-html.sh FOLDER       run by `make html` in the build directory, with srcdir and CMARK_GFM
#
# Files have the same place in the tree as in the sources, so links between pages stay right.

set -eu
LC_ALL=C
export LC_ALL
tree=$1
tools=$(cd "$srcdir/doc/html" && pwd)
links=$PWD/doc/links
rm -rf "$tree"
mkdir -p "$tree/doc/man"
tree=$(cd "$tree" && pwd)
cd "$srcdir"
cp doc/html/style.css "$tree"
guide="tutorial promises failures errors tuning porting preloading testing servers operating troubleshooting figures"

# page TITLE FILE: puts the text of standard input between the head and the foot of a page.
page()
{
    root=$(echo "$2" | sed 's|[^/]*/|../|g; s|[^/]*$||')
    mkdir -p "$(dirname "$tree/$2")"
    {
        cat <<HEAD
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>$1</title>
<link rel="stylesheet" href="${root}style.css">
</head>
<body>
<header><a href="${root}index.html">libdmutex</a> <a href="${root}index.html#guide">Guide</a>
<a href="${root}index.html#manual-pages">Manual</a> <a href="${root}index.html#design">Design</a></header>
<main>
HEAD
        cat
        printf '</main>\n</body>\n</html>\n'
    } >"$tree/$2"
}

# finish FILE: names, and links to pages.
finish()
{
    awk -v root="$(echo "$1" | sed 's|[^/]*/|../|g; s|[^/]*$||')" -v manuals="$tree/manuals" \
        -f "$tools/slug.awk" -f "$tools/page.awk"
}

# title FILE: the first heading of a markdown page.
title() { sed -n '/^# /{s/^# *//; s/`//g; s/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g; p; q;}' "$1"; }

# ---------------------------------------------------------------------------
# Manual pages.  A link to another name of a page leads to the page, and a link to a foreign page to Debian's.
# ---------------------------------------------------------------------------
{
    for page in doc/man/*.[1-8]; do
        echo "${page##*/} ${page##*/}"
    done
    for link in "$links"/*.3; do
        echo "${link##*/} $(sed 's|.*/||' "$link")"
    done
} >"$tree/manuals"
for page in doc/man/*.[1-8]; do
    name=${page##*/}
    mandoc -T html -O 'fragment,man=%N.%S.html' "$page" | awk -v manuals="$tree/manuals" '
        BEGIN {
            while ((getline line <manuals) > 0) {
                split(line, word, " ")
                page[word[1] ".html"] = word[2] ".html"
            }
            foreign = "https://manpages.debian.org/"
        }
        {
            while (match($0, /href="[A-Za-z0-9_.+-]*\.[1-8]\.html"/)) {
                link = substr($0, RSTART + 6, RLENGTH - 7)
                printf "%shref=\"%s\"", substr($0, 1, RSTART - 1), link in page ? page[link] : foreign link
                $0 = substr($0, RSTART + RLENGTH)
            }
            print
        }' | page "${name%.*}(${name##*.})" "$page.html"
done

# ---------------------------------------------------------------------------
# Markdown pages, with all files that they lead to
# ---------------------------------------------------------------------------
pages=$(find . \( -name build -o -name .git -o -name 'libdmutex-*' \) -prune -o -name '*.md' -print | sed 's|^\./||')
for page in $pages; do
    "$CMARK_GFM" --full-info-string -e table -e strikethrough "$page" | finish "$page" |
        page "$(title "$page")" "${page%.md}.html"
    folder=$(dirname "$page")
    grep -oE '\]\([^)#:]+' "$page" | cut -c3- | sort -u | while read -r link; do
        case $link in
            *.md | *.[1-8]) continue ;;
        esac
        if [ -f "$folder/$link" ]; then
            target=$tree/$folder/$link
            mkdir -p "$(dirname "$target")"
            cp "$folder/$link" "$target"
        fi
    done
done

# ---------------------------------------------------------------------------
# The index
# ---------------------------------------------------------------------------
{
    cat <<'TEXT'
# libdmutex

Mutexes and condition variables as in `<pthread.h>`, for threads of processes on different hosts, on a Redis or Valkey
server. Begin with [five minutes](doc/guide/tutorial.md), or with the [overview](README.md).

## Guide

TEXT
    for name in $guide; do
        echo "* [$(title "doc/guide/$name.md")](doc/guide/$name.md)"
    done
    printf '\n## Manual pages\n\n'
    for page in doc/man/*.[1-8]; do
        name=${page##*/}
        echo "* [${name%.*}(${name##*.})](doc/man/$name) $(sed -n 's/^\.Nd *//p' "$page")"
    done
    printf '\n## Design\n\n'
    for page in doc/design/*.md doc/peers.md; do
        echo "* [$(title "$page")]($page)"
    done
    printf '\n## The project\n\n'
    echo '* [Overview](README.md), [security](SECURITY.md), [for developers](HACKING.md), [tests](tests/README.md)'
} | "$CMARK_GFM" | finish index.html | page libdmutex index.html
rm "$tree/manuals"

cd "$tree"
awk -f "$tools/path.awk" -f "$tools/check.awk" $(find . -name '*.html' | sed 's|^\./||')
