# SPDX-License-Identifier: BSD-2-Clause
# Draws a sequence diagram as SVG:  awk -f draw-sequence.awk sequences/loss.seq >loss.svg
#
# Time goes down.  A line of the input is a step; a name is a lifeline's first word.
#
#     title TEXT                 above the picture
#     life NAME TEXT             a lifeline, from left to right
#     msg FROM TO TEXT           a message
#     miss FROM TO TEXT          a message that does not arrive
#     begin NAME KIND            a bar on the lifeline from here on: hold, or lost
#     end NAME                   the end of the bar
#     note NAME TEXT             a sentence beside the lifeline; "|" breaks the line
#     mark TEXT                  a line across all lifelines, for a moment
#     stop NAME                  the end of the lifeline: killed
#     gap N                      N pixels of nothing
#
# The picture is 400 wide, for a phone held upright; the viewer takes light or dark colours.

function escape(text)
{
    gsub(/&/, "\\&amp;", text)
    gsub(/</, "\\&lt;", text)
    gsub(/>/, "\\&gt;", text)
    return text
}

function draw(text) { body = body text "\n" }
function rest(from,    i, text)
{
    for (i = from; i <= NF; i++)
        text = text (i > from ? " " : "") $i
    return escape(text)
}

function words(x, at, anchor, class, text)
{
    draw("<text class=\"" class "\" x=\"" x "\" y=\"" at "\" text-anchor=\"" anchor "\">" text "</text>")
}

# The lifelines stand apart evenly, once all are known.
function place(    i)
{
    if (is_placed)
        return
    is_placed = 1
    for (i = 1; i <= count; i++) {
        x[name[i]] = count == 1 ? 200 : 52 + (i - 1) * (400 - 104) / (count - 1)
        words(x[name[i]], y + 4, "middle", "ink name", label[i])
        top[name[i]] = y + 14
    }
    y += 40
}

function cross(at, y, size)
{
    draw(sprintf("<path class=\"cross\" d=\"M%d %dl%d %dm0 %dl%d %d\"/>", at - size / 2, y - size / 2, size, size, -size, \
        -size, size))
}

# From bar to bar.
function arrow(from, to, is_lost,    a, b, tip)
{
    tip = x[to] > x[from] ? 1 : -1
    a = x[from] + 5 * tip
    b = is_lost ? (x[from] + x[to]) / 2 + 26 * tip : x[to] - 6 * tip
    draw("<line class=\"arrow" (is_lost ? " missing" : "") "\" x1=\"" a "\" x2=\"" b "\" y1=\"" y "\" y2=\"" y "\"/>")
    if (is_lost)
        cross(b, y, 10)
    else
        draw(sprintf("<path class=\"tip\" d=\"M%d %dl%d -4v8z\"/>", b, y, -8 * tip))
    words((x[from] + x[to]) / 2, y - 6, "middle", "ink", rest(4))
    y += 32
}

function end_bar(life)
{
    if (life in bar) {
        bars = bars "<rect class=\"" bar[life] "\" x=\"" x[life] - 5 "\" width=\"10\" y=\"" begun[life] "\" height=\"" \
            y - 12 - begun[life] "\" rx=\"3\"/>\n"
        delete bar[life]
    }
}

# Beside a lifeline at the border, and over a lifeline between others.
function note(life, text,    part, parts, i, at, anchor)
{
    parts = split(text, part, "|")
    anchor = x[life] < 100 ? "start" : x[life] > 300 ? "end" : "middle"
    at = x[life] + (anchor == "start" ? 12 : anchor == "end" ? -12 : 0)
    for (i = 1; i <= parts; i++) {
        words(at, y - 6, anchor, "soft", part[i])
        y += 16
    }
    y += 14
}

BEGIN { y = 54 }

/^#/ || !NF { next }
$1 == "title" { title = rest(2); next }
$1 == "life" { name[++count] = $2; label[count] = rest(3); next }
{ place() }
$1 == "msg" { arrow($2, $3, 0); next }
$1 == "miss" { arrow($2, $3, 1); next }
$1 == "begin" { end_bar($2); bar[$2] = $3; begun[$2] = y - 32; next }
$1 == "end" { end_bar($2); next }
$1 == "note" { note($2, rest(3)); next }
$1 == "gap" { y += $2; next }
$1 == "mark" {
    y += 4
    words(200, y - 6, "middle", "mark", rest(2))
    draw("<line class=\"moment\" x1=\"8\" x2=\"392\" y1=\"" y "\" y2=\"" y "\"/>")
    y += 30
    next
}
$1 == "stop" {
    end_bar($2)
    cross(x[$2], y - 12, 14)
    bottom[$2] = y - 12
    next
}
{ print FILENAME ":" FNR ": what is " $1 "?" >"/dev/stderr"; exit failed = 1 }

END {
    if (failed)
        exit 1
    for (i = 1; i <= count; i++)
        end_bar(name[i])
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 400 %d\" width=\"400\" height=\"%d\" role=\"img\">\n", y, y
    print "<title>" title "</title>"
    print "<style>"
    print "  .ground { fill: #ffffff } .ink { fill: #1f2328 } .soft { fill: #59636e } .mark { fill: #9a4a00 }"
    print "  text { stroke: #ffffff } .life { stroke: #8c959f } .arrow { stroke: #1f2328 } .tip { fill: #1f2328 }"
    print "  .cross { stroke: #c4212f } .moment { stroke: #b3540a } .hold { fill: #2b8a57 } .lost { fill: #c4212f }"
    print "  @media (prefers-color-scheme: dark) {"
    print "    .ground { fill: #0d1117 } .ink { fill: #f0f6fc } .soft { fill: #a9b1ba } .mark { fill: #f0964f }"
    print "    text { stroke: #0d1117 } .life { stroke: #6e7681 } .arrow { stroke: #f0f6fc } .tip { fill: #f0f6fc }"
    print "    .cross { stroke: #ff6b73 } .moment { stroke: #f0964f } .hold { fill: #46b97c } .lost { fill: #ff6b73 }"
    print "  }"
    print "  text { font-family: sans-serif; font-size: 13px; stroke-width: 4px; paint-order: stroke }"
    print "  .title { font-size: 15px; font-weight: bold } .name { font-weight: bold } .arrow { stroke-width: 1.5 }"
    print "  .missing { stroke-dasharray: 5 4 } .cross { fill: none; stroke-width: 2.5 }"
    print "  .life { stroke-dasharray: 2 4 } .moment { stroke-dasharray: 6 4 }"
    print "</style>"
    print "<rect class=\"ground\" width=\"400\" height=\"" y "\"/>"
    print "<text class=\"ink title\" x=\"200\" y=\"24\" text-anchor=\"middle\">" title "</text>"
    for (i = 1; i <= count; i++)
        print "<line class=\"life\" x1=\"" x[name[i]] "\" x2=\"" x[name[i]] "\" y1=\"" top[name[i]] "\" y2=\"" \
            (name[i] in bottom ? bottom[name[i]] : y - 8) "\"/>"
    printf "%s%s", bars, body
    print "</svg>"
}
