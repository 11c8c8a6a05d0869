# Finishes the HTML of a page:  awk -v root=../../ -v manuals=FILE -f slug.awk -f page.awk
#
# Headings get names; links to markdown and manual pages lead to their HTML; "dmutex_lock(3)" becomes a link.  The file
# `manuals` has a line for each name that man(1) finds: "dmutex_trylock.3 dmutex_lock.3".

BEGIN {
    while ((getline line <manuals) > 0) {
        split(line, word, " ")
        manual[word[1]] = word[2]
    }
}

# Links names of manual pages in a text without tags.
function link_manuals(text,    done, name, section)
{
    while (match(text, /[A-Za-z][A-Za-z0-9_.+-]*\([1-8]\)/)) {
        name = substr(text, RSTART, RLENGTH - 3)
        section = substr(text, RSTART + RLENGTH - 2, 1)
        done = done substr(text, 1, RSTART - 1)
        if (name "." section in manual)
            done = done "<a href=\"" root "doc/man/" manual[name "." section] ".html\">" name "(" section ")</a>"
        else
            done = done substr(text, RSTART, RLENGTH)
        text = substr(text, RSTART + RLENGTH)
    }
    return done text
}

# A page's link to another page, without an address of a scheme.
function lead(tag)
{
    if (tag !~ /href="[a-z]+:/) {
        sub(/\.md"/, ".html\"", tag)
        sub(/\.md#/, ".html#", tag)
        if (tag ~ /\/man\/[^"]*\.[1-8]"/)
            sub(/"[ >]*$/, ".html\">", tag)
    }
    return tag
}

# From tag to tag; a text inside a link stays.
function finish(line,    done, tag, text)
{
    while (match(line, /<[^>]*>/)) {
        tag = substr(line, RSTART, RLENGTH)
        text = substr(line, 1, RSTART - 1)
        line = substr(line, RSTART + RLENGTH)
        done = done (is_link ? text : link_manuals(text))
        if (tag ~ /^<a /) {
            is_link = 1
            tag = lead(tag)
        } else if (tag == "</a>")
            is_link = 0
        else if (tag == "<table>")
            tag = "<div class=\"wide\">" tag
        else if (tag == "</table>")
            tag = tag "</div>"
        done = done tag
    }
    return done link_manuals(line)
}

# The name of a block's file is shown; the words for the tests are not.
/<pre>/ { is_code = 1; sub(/ data-meta="(not-run|needs=[a-z]+)"/, "") }
is_code {
    print
    if (/<\/pre>/)
        is_code = 0
    next
}

/^<h[1-6]>/ {
    level = substr($0, 3, 1)
    text = $0
    gsub(/<[^>]*>/, "", text)
    gsub(/&quot;/, "\"", text)
    gsub(/&lt;/, "<", text)
    gsub(/&gt;/, ">", text)
    gsub(/&amp;/, "\\&", text)
    name = slug(text)
    sub(/^<h[1-6]>/, "<h" level " id=\"" name "\">")
    sub(/<\/h[1-6]>$/, " <a class=\"here\" href=\"#" name "\" aria-label=\"link to this part\">#</a></h" level ">")
}
{ print finish($0) }
