# Paths of links; for check.awk, and for tests/doc/links.awk.

# Without "." and "..", so that two ways to a file are one name.
function shorten(path)
{
    gsub(/\/\.\//, "/", path)
    while (match(path, /[^\/.][^\/]*\/\.\.\//))
        path = substr(path, 1, RSTART - 1) substr(path, RSTART + RLENGTH)
    return path
}

function is_file(path,    line)
{
    if (!(path in known)) {
        known[path] = (getline line <path) >= 0
        close(path)
    }
    return known[path]
}

# Splits off the part of a target behind and with "#": returns the path, and sets `anchor`.
function path_of(target)
{
    anchor = ""
    if (match(target, /#/)) {
        anchor = substr(target, RSTART)
        target = substr(target, 1, RSTART - 1)
    }
    return target
}
