# Compares a program's output with the text of a page:  awk -f match.awk expected said
# "…" stands for any text, also for none and for several lines; a line of "…" alone for any lines, also for none.
# Exit status 1: the two differ.

{ text[FILENAME == ARGV[1] ? "expected" : "said"] = text[FILENAME == ARGV[1] ? "expected" : "said"] $0 "\n" }

END {
    pattern = text["expected"]
    gsub(/[][\\.^$*+?(){}|]/, "\\\\&", pattern)
    gsub(/\n…\n/, "\n…", pattern)
    gsub(/…/, "(.|\n)*", pattern)
    exit text["said"] ~ ("^" pattern "$") ? 0 : 1
}
