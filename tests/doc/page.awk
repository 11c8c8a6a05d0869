# Makes a shell script of a page's fenced blocks:  awk -v needs=' cmake ' -f page.awk page.md
#
# The words after the fence say what a block is for:
#
#     ```sh                 commands; each must succeed
#     ```console            commands behind "$ ", and the expected output; "…" stands for any text
#     ```c hello.c          a file of this name; the language may be any
#     ```sh not-run         only shown, as is ```text
#     ```sh needs=cmake     a block of a recipe, run only if `needs` has the word
#
# All blocks of a page run in one shell, from top to bottom.  The script expects the functions `at` and `expect` of
# page.sh, and prints nothing else.

# Ends the command of a console block: its output goes to a file, which is compared with the expected text.
function end_command()
{
    if (command == "")
        return
    print "{\n" command "\n} >\"$said\" 2>&1 </dev/null || :"
    print "expect <<'END_OF_EXPECTED'\n" expected "END_OF_EXPECTED"
    command = expected = ""
}

function complain(words)
{
    print "complain '" FILENAME ":" FNR ": " words "'"
}

# The words after the fence: the kind of the block, the name of its file, what it needs.
function read_fence(    i)
{
    kind = "shown"
    file = need = ""
    language = substr($1, 4)
    for (i = 2; i <= NF; i++) {
        if ($i == "not-run")
            not_run = 1
        else if ($i ~ /^needs=/)
            need = substr($i, 7)
        else
            file = $i
    }
    if (not_run) {
        not_run = 0
        return
    }
    if (file != "")
        kind = "file"
    else if (language == "sh" || language == "console")
        kind = language
    else if (language != "text")
        complain("a block of " (language == "" ? "no language" : language) " has neither a file nor not-run")
    if (need != "" && !index(needs, " " need " "))
        kind = "shown"
}

/^```/ && !is_inside {
    is_inside = 1
    read_fence()
    print "at " FNR
    if (kind == "file")
        print "mkdir -p \"$(dirname '" file "')\"; cat >'" file "' <<'END_OF_FILE'"
    next
}

/^```/ {
    is_inside = 0
    if (kind == "file")
        print "END_OF_FILE"
    if (kind == "console")
        end_command()
    next
}

/^    / && !is_inside && is_blank_before { complain("an indented block, which no test runs: write a fence") }
{ is_blank_before = ($0 == "") }

!is_inside || kind == "shown" { next }

kind != "console" { print; next }

/^\$ / {
    end_command()
    print "at " FNR
    command = substr($0, 3)
    next
}

command ~ /\\$/ && expected == "" { command = command "\n" $0; next }

{ expected = expected $0 "\n" }
