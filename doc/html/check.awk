# Checks the links of an HTML tree:  awk -f path.awk -f check.awk FILE...  (in the tree's folder, names without "./")
# Prints each link to a file that is not there, or to a name that no element of the page has.

{
    text = $0
    while (match(text, /(href|src|id)="[^"]*"/)) {
        link = substr(text, RSTART, RLENGTH)
        text = substr(text, RSTART + RLENGTH)
        value = link
        sub(/^[a-z]*="/, "", value)
        sub(/"$/, "", value)
        if (link ~ /^id/) {
            id[FILENAME "#" value] = 1
        } else if (value !~ /^[a-z]+:/) {
            folder = FILENAME
            sub(/[^\/]*$/, "", folder)
            from[++count] = FILENAME
            target[count] = value ~ /^#/ ? FILENAME value : shorten(folder value)
        }
    }
}

END {
    for (i = 1; i <= count; i++) {
        path = path_of(target[i])
        if (!is_file(path))
            print from[i] ": no file " path
        else if (anchor != "" && !(path anchor in id))
            print from[i] ": no element " anchor " in " path
        else
            continue
        failed = 1
    }
    exit failed
}
