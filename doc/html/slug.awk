# The name of a heading in links, as GitHub has it and as `make html` writes it.  For links.awk and page.awk.

function slug(text)
{
    gsub(/\[|\]\([^)]*\)/, "", text)
    text = tolower(text)
    gsub(/[][!"#$%&'()*+,.\/:;<=>?@\\^`{|}~]|…|–|—/, "", text)
    gsub(/ /, "-", text)
    return text
}
