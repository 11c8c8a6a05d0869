# Checks a file in the text format of Prometheus, as far as libdmutex uses the format; prints complaints.
#
# Each family has a HELP and a TYPE before its samples, and all its samples together; no series comes twice; the buckets
# of a histogram rise by limit and by count; and the last bucket, +Inf, has as many as _count says.

function complain(text) { print FILENAME ": " FNR ": " text ": " $0 }

function is_number(text) { return text ~ /^[0-9]+(\.[0-9]+)?$/ }

/^# HELP / {
    if ($3 in helped) complain("a second HELP")
    if (NF < 4) complain("a HELP without words")
    helped[$3] = 1
    next
}
/^# TYPE / {
    if (!($3 in helped)) complain("a TYPE without HELP")
    if ($4 != "counter" && $4 != "histogram" && $4 != "gauge") complain("an unknown type")
    if ($4 == "counter" && $3 !~ /_total$/) complain("a counter is not a _total")
    family = $3
    type = $4
    limit = count = -1
    next
}
!/^dmutex_[a-z_]+\{program="([^"\\]|\\["\\])*",pid="[0-9]+"(,[a-z]+="[^"]+")?\} [0-9.]+$/ {
    complain("not a sample of libdmutex")
    next
}
{
    series = $0
    sub(/ [^ ]*$/, "", series)
    value = substr($0, length(series) + 2)
    name = series
    sub(/\{.*/, "", name)
    if (series in seen) complain("a series twice")
    seen[series] = 1
    if (!is_number(value)) complain("not a number")
}
(type == "counter" || type == "gauge") && name != family { complain("not of the family " family) }
type == "histogram" && name == family "_bucket" {
    le = series
    sub(/.*,le="/, "", le)
    sub(/".*/, "", le)
    if (limit == "+Inf" || (le != "+Inf" && (!is_number(le) || le + 0 <= limit + 0))) complain("limits do not rise")
    if (value + 0 < count + 0) complain("counts fall")
    limit = le
    count = value
    next
}
type == "histogram" && name == family "_sum" { next }
type == "histogram" {
    if (name != family "_count") complain("not of the family " family)
    if (limit != "+Inf") complain("no last bucket before")
    if (value != count) complain("not the count of the last bucket")
}
END { if (NR == 0) print FILENAME ": empty" }
