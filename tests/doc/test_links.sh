#!/bin/sh
# The markdown pages: links lead somewhere, README.md leads to each page of the guide, the pictures are drawn of their
# texts, the tarball has all. Speaks TAP. Run by `make check` in the build directory; srcdir comes from there.

. "$srcdir/tests/lib/tap.sh"
pages=$(cd "$srcdir" && ls README.md HACKING.md SECURITY.md examples/README.md tests/README.md doc/*.md doc/guide/*.md doc/design/*.md)

(cd "$srcdir" && awk -f doc/html/slug.awk -f doc/html/path.awk -f tests/doc/links.awk $pages) >>"$scratch/complaints"
result "each link of a page leads to a file, and to a heading of the file"

for page in "$srcdir"/doc/guide/*.md; do
    grep -q "](doc/guide/${page##*/})" "$srcdir/README.md" || complain "README.md has no link to ${page##*/}"
done
result "README.md leads to each page of the guide"

for example in "$srcdir"/examples/*.c "$srcdir"/examples/*.cc; do
    name=${example##*/}
    grep -q "\`${name%.*}\`" "$srcdir/examples/README.md" || complain "examples/README.md does not name $name"
done
result "examples/README.md names each example"

for text in "$srcdir"/doc/img/sequences/*.seq; do
    name=${text##*/}
    awk -f "$srcdir/doc/img/draw-sequence.awk" "$text" | cmp - "$srcdir/doc/img/${name%.seq}.svg" \
        >>"$scratch/complaints" 2>&1
done
result "the pictures of sequences show their texts: make sequences draws them"

for file in $(cd "$srcdir" && ls doc/guide/*.md doc/design/*.md doc/img/*.svg doc/img/sequences/*.seq); do
    grep -q "^    $file\( .\)\{0,1\}$" "$srcdir/doc/local.mk" || complain "doc/local.mk does not have $file"
done
result "the tarball has each page and picture"

finish
