# Checks the links of markdown pages:  awk -f slug.awk -f path.awk -f links.awk PAGE...
# Prints each link to a file that is not there, or to a heading that the page does not have.

FNR == 1 { folder = FILENAME; sub(/[^\/]*$/, "", folder); is_code = 0; pages[shorten(FILENAME)] = 1 }
/^ *```/ { is_code = !is_code; next }
is_code { next }

/^#+ / {
    text = $0
    sub(/^#+ +/, "", text)
    heading[shorten(FILENAME) "#" slug(text)] = 1
}

{
    text = $0
    while (match(text, /\]\([^)]*\)/)) {
        link = substr(text, RSTART + 2, RLENGTH - 3)
        text = substr(text, RSTART + RLENGTH)
        if (link !~ /^[a-z]+:/) {
            count++
            from[count] = FILENAME ":" FNR
            target[count] = link ~ /^#/ ? FILENAME link : folder link
        }
    }
}

END {
    for (i = 1; i <= count; i++) {
        path = path_of(target[i])
        if (path !~ /\/$/ && !is_file(path))
            print from[i] ": no file " path
        else if (anchor != "" && shorten(path) in pages && !(shorten(path) anchor in heading))
            print from[i] ": no heading " anchor " in " path
    }
}
