# Turns Lua files into a C file: awk -f embed-lua.awk DIR/NAME.lua... >scripts.c
#
# DIR/NAME.lua becomes the string dm_lua_NAME, and dm_sha_NAME, by which a server knows it. The line
# `--@include FILE` is replaced by DIR/FILE.lua. Blank lines, lines that are only a comment, and the
# white space around a line are left out: they would go over the wire. A first line `#!lua ...`
# stays, it is the server's. So a script has neither block comments nor strings of several lines.
#
# The line `--@constant NAME = VALUE` names a number or a text, from there to the end of the script: the value
# replaces the name, so a constant costs the server nothing. A value may be made of earlier constants; Lua's compiler
# reckons with numbers. NAME must not be a word of a text, nor the name of something else. A comment may follow.
#
# dm_lua_NAME_cluster and dm_sha_NAME_cluster are the same script for a node of a Cluster: DIR/_guard.lua
# comes first, unless the script says `--@unguarded`, and sharded messages replace the other messages.

function fail(message)
{
    print message >"/dev/stderr"
    failed = 1
    exit 1
}

# Returns a line with the values of its constants instead of their names; a field may be called as a constant.
function fill_in(line,    done, name)
{
    done = ""
    while (match(line, /[A-Za-z_][A-Za-z0-9_]*/)) {
        name = substr(line, RSTART, RLENGTH)
        done = done substr(line, 1, RSTART - 1)
        line = substr(line, RSTART + RLENGTH)
        done = done (name in constants && done !~ /[.:]$/ ? constants[name] : name)
    }
    return done line
}

# Takes "NAME = VALUE" and perhaps a comment. A value that is more than one number or text gets brackets.
function define(path, line,    name, value)
{
    if (line !~ /^[a-z_]+ = ./)
        fail(path ": not NAME = VALUE: " line)
    name = value = line
    sub(/ = .*/, "", name)
    sub(/^[a-z_]+ = /, "", value)
    sub(/[ \t]+-- .*/, "", value)
    if (name in constants)
        fail(path ": a second value of " name)
    value = fill_in(value)
    constants[name] = value ~ /^[0-9.]+$/ || value ~ /^'[^']*'$/ ? value : "(" value ")"
}

# Appends the lines of a script to `lines`, and counts them in `count`.
function embed(dir, name,    path, line, got)
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
            sub(/^--@include +/, "", line)
            embed(dir, line)
        } else if (line ~ /^--@unguarded$/) {
            is_guarded = 0
        } else if (line ~ /^--@constant /) {
            sub(/^--@constant +/, "", line)
            define(path, line)
        } else if (line != "" && line !~ /^--/) {
            lines[++count] = fill_in(line)
        }
    }
    if (got < 0)
        fail(path ": cannot be read")
    close(path)
    delete being_read[path]
}

# Needs sha1sum, of coreutils; what it prints goes to our own output, between what we print.
function name_of(name, text,    hash)
{
    printf "\nextern const char dm_sha_%s[];\nconst char dm_sha_%s[] = ", name, name
    fflush()
    hash = "sha1sum | sed 's/ .*//; s/.*/\"&\";/'"
    printf "%s", text | hash
    if (close(hash) != 0)
        fail("sha1sum failed")
}

# Writes the script, of `count` lines, as two strings.
function put(name,    text, line, i)
{
    printf "\nextern const char dm_lua_%s[];\nconst char dm_lua_%s[] =", name, name
    for (i = 1; i <= count; i++) {
        line = lines[i]
        text = text line "\n"
        gsub(/\\/, "&&", line)
        gsub(/"/, "\\\\&", line)
        printf "\n    \"%s\\n\"", line
    }
    print ";"
    name_of(name, text)
}

# Makes the lines those for a node of a Cluster: the guard stands before all but the first line `#!lua ...`.
function make_cluster(dir,    own, own_count, i)
{
    own_count = count
    for (i = 1; i <= count; i++)
        own[i] = lines[i]
    if (own[1] !~ /^#!/)
        fail(dir ": a script without a first line #!lua")
    count = 1
    if (is_guarded)
        embed(dir, "_guard")
    for (i = 2; i <= own_count; i++) {
        gsub(/'PUBLISH'/, "'SPUBLISH'", own[i])
        gsub(/NUMSUB'/, "SHARDNUMSUB'", own[i])
        lines[++count] = own[i]
    }
}

BEGIN {
    print "/* Made by embed-lua.awk from the Lua files; not to be edited. */"
    for (i = 1; i < ARGC; i++) {
        dir = name = ARGV[i]
        sub(/[^\/]*$/, "", dir)
        sub(/.*\//, "", name)
        sub(/\.lua$/, "", name)
        count = 0
        is_guarded = 1
        split("", constants)
        embed(dir, name)
        put(name)
        make_cluster(dir)
        put(name "_cluster")
    }
    exit failed
}
