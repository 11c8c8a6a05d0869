# Manual pages; the section is the file's suffix.
dist_man_MANS =
