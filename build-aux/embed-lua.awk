# Turns Lua files into a C file: awk -f embed-lua.awk DIR/NAME.lua... >scripts.c
#
# DIR/NAME.lua becomes the string dm_lua_NAME, and dm_sha_NAME, by which a server knows it. The line
# `--@include FILE` is replaced by DIR/FILE.lua. Blank lines, lines that are only a comment, and the
# white space around a line are left out: they would go over the wire. A first line `#!lua ...`
# stays, it is the server's. So a script has neither block comments nor strings of several lines.

function fail(message)
{
    print message >"/dev/stderr"
    failed = 1
    exit 1
}

function put(line)
{
    text = text line "\n"
    gsub(/\\/, "&&", line)
    gsub(/"/, "\\\\&", line)
    printf "\n    \"%s\\n\"", line
}

function embed(dir, name,    path, line, got, included)
{
    path = dir name ".lua"
    if (path in being_read)
        fail(path ": includes itself")
    being_read[path]
    while ((got = (getline line <path)) > 0) {
        sub(/^[ \t]+/, "", line)
        sub(/[ \t\r]+$/, "", line)
        if (line ~ /^--\[=*\[/) {
            fail(path ": block comments are not understood: " line)
        } else if (line ~ /^--@include /) {
            included = line
            sub(/^--@include +/, "", included)
            embed(dir, included)
        } else if (line != "" && line !~ /^--/) {
            put(line)
        }
    }
    if (got < 0)
        fail(path ": cannot be read")
    close(path)
    delete being_read[path]
}

# Needs sha1sum, of coreutils; what it prints goes to our own output, between what we print.
function name_of(name,    hash)
{
    printf "\nextern const char dm_sha_%s[];\nconst char dm_sha_%s[] = ", name, name
    fflush()
    hash = "sha1sum | sed 's/ .*//; s/.*/\"&\";/'"
    printf "%s", text | hash
    if (close(hash) != 0)
        fail("sha1sum failed")
}

BEGIN {
    print "/* Made by embed-lua.awk from the Lua files; not to be edited. */"
    for (i = 1; i < ARGC; i++) {
        dir = name = ARGV[i]
        sub(/[^\/]*$/, "", dir)
        sub(/.*\//, "", name)
        sub(/\.lua$/, "", name)
        printf "\nextern const char dm_lua_%s[];\nconst char dm_lua_%s[] =", name, name
        text = ""
        embed(dir, name)
        print ";"
        name_of(name)
    }
    exit failed
}
