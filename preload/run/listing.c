/* SPDX-License-Identifier: BSD-2-Clause */
#include "listing.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <glib.h>

#include "base/place.h"
#include "refuse.h"
#include "shared/elffile.h"
#include "shared/seen.h"
#include "shared/text.h"
#include "wording.h"

#define SYMBOL_ROOM 1024
#define LARGEST_MADE (64 << 20) /* bytes of MADE_FILE that are read */

/*
 * One line, for all processes that have used the object. The rule is the key: to the module, two objects with the same
 * rule are one.
 */
struct line {
    char *rule;
    uint64_t count;
    unsigned kind, bits;
};

/* Why something has no rule. */
enum nameless { IN_NO_FILE, IN_NO_BUILD, NAMELESS_COUNT };

struct listing {
    GPtrArray *lines;
    GHashTable *by_rule;               /* the same lines; does not own them */
    uint64_t nameless[NAMELESS_COUNT]; /* uses, not objects: the module cannot tell the objects apart */
    bool is_full;
};

/* ---- the rule of an object --------------------------------------------------------------- */

/*
 * A symbol, if a rule with it leads back to the same place: names of static objects may occur more than once. A name
 * with an offset is split, because the rule has them separately.
 */
static char *rule_by_symbol(const struct seen *seen)
{
    char name[SYMBOL_ROOM], *plus;
    struct rule rule = { .kind = RULE_SYMBOL, .module = text_basename(seen->path), .symbol = name };
    uint64_t found;

    if (!elf_name_offset(seen->path, seen->offset, name, sizeof name))
        return NULL;
    plus = strrchr(name, '+');
    if (plus && text_number(plus + 1, &rule.offset))
        *plus = '\0';
    if (elf_find_symbol(seen->path, name, &found) != ELF_FOUND || found + rule.offset != seen->offset)
        return NULL;
    rule.is_condition = seen->kind == SEEN_CONDITION;
    return wording_of_rule(&rule);
}

/* Only with a build-id: in another build the offset would be some other variable, and the module could not tell. */
static char *rule_by_offset(const struct seen *seen)
{
    char id[ELF_BUILD_ID_ROOM];
    struct rule rule = { .kind = RULE_OFFSET,
                         .module = text_basename(seen->path),
                         .build_id = id,
                         .offset = seen->offset,
                         .is_condition = seen->kind == SEEN_CONDITION };

    return elf_build_id(seen->path, id) ? wording_of_rule(&rule) : NULL;
}

static char *rule_by_mapping(const struct seen *seen)
{
    bool is_shm = g_str_has_prefix(seen->path, "/dev/shm/");
    struct rule rule = { .kind = is_shm ? RULE_SHM : RULE_MAP,
                         .module = seen->path + (is_shm ? strlen("/dev/shm") : 0),
                         .offset = seen->offset,
                         .is_condition = seen->kind == SEEN_CONDITION };

    return wording_of_rule(&rule);
}

static char *rule_by_file(const struct seen *seen)
{
    struct rule rule = { .kind = seen->kind == SEEN_FLOCK ? RULE_FLOCK : RULE_FCNTL, .module = seen->path };

    return wording_of_rule(&rule);
}

/*
 * NULL if there is no rule for the object; *ret_why says why. A deleted file can no longer be found under its former
 * name.
 */
static char *rule_of(const struct seen *seen, enum nameless *ret_why)
{
    char *rule;

    *ret_why = IN_NO_FILE;
    if (g_str_has_suffix(seen->path, " (deleted)"))
        return NULL;
    switch ((enum seen_place)seen->place) {
    case SEEN_IN_MODULE:
        rule = rule_by_symbol(seen);
        *ret_why = IN_NO_BUILD;
        return rule ? rule : rule_by_offset(seen);
    case SEEN_IN_MAPPING:
        return rule_by_mapping(seen);
    case SEEN_IN_FILE:
        return rule_by_file(seen);
    case SEEN_NOWHERE:
        break;
    }
    return NULL;
}

/* ---- collected --------------------------------------------------------------------------- */

static void free_line(gpointer pointer)
{
    struct line *line = pointer;

    g_free(line->rule);
    g_free(line);
}

/* by_rule borrows the text of the line, so the line must live as long. */
static void add(struct listing *listing, const struct seen *seen)
{
    enum nameless why;
    char *rule = rule_of(seen, &why);
    struct line *line = rule ? g_hash_table_lookup(listing->by_rule, rule) : NULL;

    if (!rule) {
        listing->nameless[why] += seen->count;
        return;
    }
    if (line) {
        g_free(rule);
    } else {
        line = g_new0(struct line, 1);
        *line = (struct line){ .rule = rule, .kind = seen->kind };
        g_hash_table_insert(listing->by_rule, rule, line);
        g_ptr_array_add(listing->lines, line);
    }
    line->count += seen->count;
    line->bits |= seen->bits;
}

/*
 * Reads a file of the folder, which must not be a link, up to `most` bytes; NULL if it is not ours. Uses descriptors,
 * because a cleaner of /tmp may have removed the folder, and a stranger may have made it again.
 */
static char *read_all(int folder, const char *name, size_t most, size_t *ret_length)
{
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat status;
    g_autofree char *content = NULL;
    ssize_t got = -1;

    if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
        size_t size = MIN((size_t)status.st_size, most);

        content = g_malloc(size + 1);
        got = read(fd, content, size);
    }
    if (fd >= 0)
        close(fd);
    if (got < 0)
        return NULL;
    content[got] = '\0';
    *ret_length = (size_t)got;
    return g_steal_pointer(&content);
}

/*
 * The process may still be running. Its file was made in full size at once. `kind` is written last, so an entry that
 * has a kind is complete; but any process of the command may have written here, so the version is compared and the path
 * terminated.
 */
static void read_file(struct listing *listing, int folder, const char *name)
{
    struct seen_file *file;
    size_t length;
    g_autofree char *content = read_all(folder, name, sizeof *file, &length);

    file = (void *)content;
    if (!file || length < sizeof *file || file->version != SEEN_VERSION)
        return;
    listing->is_full |= file->is_full;
    for (size_t i = 0; i < SEEN_ENTRIES; i++) {
        struct seen *seen = &file->entries[i];

        seen->path[SEEN_PATH_ROOM - 1] = '\0';
        if (seen->kind != SEEN_NOTHING)
            add(listing, seen);
    }
}

static void for_each_file(int folder, void (*visit)(struct listing *, int, const char *), struct listing *listing)
{
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *entry;

    while (directory && (entry = readdir(directory)))
        if (entry->d_name[0] != '.')
            visit(listing, folder, entry->d_name);
    if (directory)
        closedir(directory);
}

/* ---- printed ----------------------------------------------------------------------------- */

/* The most used come first. Equal counts are sorted by rule, so that two runs can be compared. */
static int compare(gconstpointer one, gconstpointer other)
{
    const struct line *left = *(struct line *const *)one, *right = *(struct line *const *)other;

    if (left->count != right->count)
        return left->count < right->count ? 1 : -1;
    return strcmp(left->rule, right->rule);
}

/* Why the rule should not be proposed, namely that the program would fail under it; or NULL. */
static const char *objection_to(const struct line *line)
{
    if (line->kind == SEEN_FCNTL && (line->bits & SEEN_PART))
        return "  # parts of this file are locked, as databases do: that cannot be distributed";
    return NULL;
}

/* Priorities do not reach beyond a host. The bits of a mutex are glibc's, as in struct seen. */
static const char *remark_of(const struct line *line)
{
    if ((line->kind == SEEN_FLOCK || line->kind == SEEN_FCNTL) && (line->bits & SEEN_SHARED))
        return "  # shared locks, too: these need Shared=exclusive";
    if (line->kind == SEEN_MUTEX && (line->bits & 0x20))
        return "  # priority inheritance: stays local";
    if (line->kind == SEEN_MUTEX && (line->bits & 0x40))
        return "  # priority ceiling: stays local";
    if (line->kind == SEEN_MUTEX && (line->bits & 0x10))
        return "  # robust";
    return "";
}

static void print_line(const struct line *line, FILE *to)
{
    g_autoptr(GString) escaped = g_string_new(NULL);
    g_autofree char *rule = NULL;

    wording_escape(escaped, line->rule);
    rule = say_clean(escaped->str);
    if (objection_to(line))
        fprintf(to, "#%9" PRIu64 "  %s%s\n", line->count, rule, objection_to(line));
    else
        fprintf(to, "%10" PRIu64 "  %s%s\n", line->count, rule, remark_of(line));
}

/* ---- made, not locked -------------------------------------------------------------------- */

/* A file that processes have made, or tried to make. */
struct made {
    char way;
    unsigned count, failures;
};

/* WAY RESULT PATH */
static void take_made(GHashTable *all, const char *line)
{
    struct made *made;

    if (strlen(line) < 5)
        return;
    made = g_hash_table_lookup(all, line + 4);
    if (!made) {
        made = g_new0(struct made, 1);
        made->way = line[0];
        g_hash_table_insert(all, g_strdup(line + 4), made);
    }
    made->count++;
    made->failures += line[2] == '1';
}

/*
 * Programs make ordinary new files and folders in the same way; names and repetition suggest a lock file. This is a
 * guess, printed as a remark and never as a rule. Folders count by name only, because programs make the same folder
 * again at each start.
 */
static bool is_like_lock(const char *path, const struct made *made)
{
    static const char *const words[] = { "lock", "lck", ".pid" };
    g_autofree char *name = g_ascii_strdown(text_basename(path), -1);

    for (size_t i = 0; i < G_N_ELEMENTS(words); i++)
        if (strstr(name, words[i]))
            return true;
    return made->way != MADE_BY_MKDIR && (made->count > 1 || made->failures > 0);
}

static const char *way_of(const struct made *made)
{
    return made->way == MADE_BY_OPEN ? "O_EXCL" : made->way == MADE_BY_LINK ? "link()" : "mkdir()";
}

static void print_made(int folder, FILE *to)
{
    size_t length;
    g_autofree char *text = read_all(folder, MADE_FILE, LARGEST_MADE, &length);
    g_autoptr(GHashTable) all = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_autoptr(GList) paths = NULL;
    g_auto(GStrv) lines = NULL;

    if (!text)
        return;
    lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line; line++)
        take_made(all, *line);
    paths = g_list_sort(g_hash_table_get_keys(all), (GCompareFunc)strcmp);
    for (GList *at = paths; at; at = at->next) {
        const struct made *made = g_hash_table_lookup(all, at->data);
        g_autofree char *path = say_clean(at->data);

        if (!is_like_lock(at->data, made))
            continue;
        fprintf(to, "# %s was made by %s, %u times: such a lock file cannot be distributed; use flock(1)\n", path,
                way_of(made), made->count);
    }
}

/* ---- the rest ---------------------------------------------------------------------------- */

static void print_rest(const struct listing *listing, FILE *to)
{
    static const char *const why[NAMELESS_COUNT] = {
        [IN_NO_FILE] = "of objects in the heap, on a stack or in memory without a file: these have no lasting name",
        [IN_NO_BUILD] = "of objects in files without symbols and build-id: in another build they would be elsewhere",
    };

    for (size_t i = 0; i < NAMELESS_COUNT; i++)
        if (listing->nameless[i])
            fprintf(to, "# %" PRIu64 " uses %s\n", listing->nameless[i], why[i]);
    if (listing->is_full)
        fprintf(to, "# a process used more than %d, or its disk is full: the rest is left out\n", SEEN_ENTRIES);
    if (listing->lines->len == 0)
        fprintf(to, "# nothing was used that a rule can name\n");
}

void listing_print(int folder, FILE *to)
{
    g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(free_line);
    g_autoptr(GHashTable) by_rule = g_hash_table_new(g_str_hash, g_str_equal);
    struct listing listing = { .lines = lines, .by_rule = by_rule };

    for_each_file(folder, read_file, &listing);
    g_ptr_array_sort(lines, compare);
    for (guint i = 0; i < lines->len; i++)
        print_line(lines->pdata[i], to);
    print_made(folder, to);
    print_rest(&listing, to);
    fflush(to);
}

/*
 * The folder has mode 0700 and a random name, because the reports contain paths. If another user could exchange it, no
 * process would report there, and the list would be empty without a reason.
 */
bool listing_make(char **ret_path, int *ret_folder, GError **error)
{
    g_autoptr(GError) reason = NULL;
    g_autofree char *made = g_dir_make_tmp("dmutex-list-XXXXXX", &reason);
    g_autofree char *path = made ? g_canonicalize_filename(made, NULL) : NULL;
    struct dm_fault fault;

    if (!path)
        return refuse(error, REFUSE_CANNOT_RUN, "%s: set TMPDIR to a folder that can be written", reason->message);
    *ret_folder = dm_place_open_own(path, false, &fault);
    if (*ret_folder >= 0) {
        *ret_path = g_steal_pointer(&path);
        return true;
    }
    rmdir(path);
    if (fault.kind == DM_FAULT_OWNER)
        return refuse(error, REFUSE_CANNOT_RUN, "%s %s %u: set TMPDIR to a folder that no other user can change",
                      fault.place, fault.words, (unsigned)fault.owner);
    return refuse(error, REFUSE_CANNOT_RUN, "%s: %s", fault.place, g_strerror(fault.error));
}

static void remove_file(struct listing *listing, int folder, const char *name)
{
    (void)listing;
    unlinkat(folder, name, 0);
}

/* There should be no subfolders: if the command has made one, it stays, and the removal fails silently. */
void listing_remove(int folder, const char *path)
{
    for_each_file(folder, remove_file, NULL);
    dm_place_remove(folder, path);
    close(folder);
}
