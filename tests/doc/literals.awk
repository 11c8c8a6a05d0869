# Prints the string literals of C sources as readers see them:  awk -f literals.awk FILE...
# Adjacent literals are joined, and "…" stands for conversions of printf and for macros.  One line for
# each file.  An escaped quote is a plain one, or the text of the variable `quote`.

BEGIN { quote = quote == "" ? "\"" : quote }

function show(text)
{
    gsub(/\\"/, "\001", text)
    gsub(/"[ \t]*"/, "", text)                 # joined literals
    gsub(/"[ \t]*[A-Za-z_0-9]+[ \t]*"/, "…", text) # a macro between two
    gsub(/%[-+ #0]*[0-9]*(\.[0-9*]+)?[hlzj]*([diouxXscpfgem]|…)/, "…", text)
    gsub(/(…)+/, "…", text)
    gsub(/\001/, quote, text)
    gsub(/\\n/, " ", text)
    print text
}

FNR == 1 && NR > 1 { show(all); all = "" }
{
    sub(/^[ \t]+/, "")
    all = all " " $0
}
END { show(all) }
