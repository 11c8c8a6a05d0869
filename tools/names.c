/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dmutex names, and dmutex-names: prints the names of mutexes and condition variables with static initialisers, in
 * programs, libraries and object files, and fails if an automatic name cannot be used.
 *
 * The files are only read, and are not trusted: every offset is checked.
 */
#include "names.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "names/literal.h"

struct file {
    const char *path;
    const unsigned char *bytes;
    size_t size;
    const ElfW(Ehdr) *head;
    const ElfW(Shdr) *sections;
};

/* C++ symbols may be longer; these are cut. */
#define SYMBOL_ROOM 1024

/* One object, and the list of all objects of a file. */
struct found {
    char name[DM_LITERAL_SIZE];
    bool is_automatic;
    enum dm_literal_kind kind;
    char *symbol;    /* freed by clear() */
    bool is_address; /* the symbol is an address, because the file has none */
};

struct list {
    struct found *entries;
    size_t count;
};

static bool is_faulty;
static const char *program;
static struct json *document; /* NULL: lines for people */
static bool is_comparing;     /* names_diff() runs, and prints and checks by itself */

/* Names, symbols and paths may contain any byte, but each must stay on its line. */
static void print_text(FILE *to, const char *text)
{
    while (*text) {
        size_t length = dm_text_printable(text);

        if (length && *text != '\\')
            fprintf(to, "%.*s", (int)length, text);
        else
            fprintf(to, "\\x%02x", (unsigned char)*text);
        text += length ? length : 1;
    }
}

static int complain(const char *path, const char *sentence)
{
    fprintf(stderr, "%s: ", program);
    print_text(stderr, path);
    fprintf(stderr, ": %s\n", sentence);
    return NAMES_TROUBLE;
}

static void fault(const char *path, const char *name, const char *sentence)
{
    fprintf(stderr, "%s: ", program);
    print_text(stderr, path);
    fputs(": \"", stderr);
    print_text(stderr, name);
    fprintf(stderr, "\": %s\n", sentence);
    is_faulty = true;
}

/* ---- the file ---------------------------------------------------------------------------- */

static bool is_inside(const struct file *file, uint64_t offset, uint64_t size)
{
    return offset <= file->size && size <= file->size - offset;
}

static bool is_elf(const struct file *file)
{
    static const unsigned char kind = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;
    static const unsigned char order = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;

    return file->size >= sizeof *file->head && memcmp(file->bytes, ELFMAG, SELFMAG) == 0 &&
           file->bytes[EI_CLASS] == kind && file->bytes[EI_DATA] == order;
}

static const char *read_head(struct file *file)
{
    if (!is_elf(file))
        return "is not an ELF file for this kind of machine";
    file->head = (const void *)file->bytes;
    if (file->head->e_shnum == 0)
        return "has no section headers";
    if (file->head->e_shentsize != sizeof *file->sections || file->head->e_shoff % _Alignof(ElfW(Shdr)) ||
        !is_inside(file, file->head->e_shoff, (uint64_t)file->head->e_shnum * sizeof *file->sections))
        return "is damaged: its section headers are not inside it";
    file->sections = (const void *)(file->bytes + file->head->e_shoff);
    return NULL;
}

/* Returns the error message, or NULL. */
static const char *open_file(struct file *ret_file)
{
    int descriptor = open(ret_file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not block */
    const char *sentence = NULL;
    struct stat status;
    void *bytes;

    if (descriptor < 0)
        return strerror(errno);
    if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size == 0) {
        close(descriptor);
        return "is not an ELF file";
    }
    bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (bytes == MAP_FAILED)
        sentence = strerror(errno);
    close(descriptor);
    if (sentence)
        return sentence;
    ret_file->bytes = bytes;
    ret_file->size = (size_t)status.st_size;
    sentence = read_head(ret_file);
    if (sentence)
        munmap(bytes, (size_t)status.st_size);
    return sentence;
}

/* ---- symbols ----------------------------------------------------------------------------- */

static const char *string_at(const struct file *file, const ElfW(Shdr) *table, ElfW(Word) offset)
{
    const char *text = (const char *)file->bytes + table->sh_offset + offset;

    if (!is_inside(file, table->sh_offset, table->sh_size) || offset >= table->sh_size ||
        !memchr(text, '\0', table->sh_size - offset))
        return "?";
    return text;
}

/* True if the symbol is a variable that covers the address; in an object file, that position of the section. */
static bool covers(const ElfW(Sym) *symbol, ElfW(Half) section, ElfW(Addr) address)
{
    return ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT && symbol->st_shndx == section && address >= symbol->st_value &&
           address - symbol->st_value < symbol->st_size;
}

static bool find_symbol_in(const struct file *file, const ElfW(Shdr) *table, ElfW(Half) section, ElfW(Addr) address,
                           char ret_symbol[SYMBOL_ROOM])
{
    const ElfW(Sym) *symbols = (const void *)(file->bytes + table->sh_offset);

    if (!is_inside(file, table->sh_offset, table->sh_size) || table->sh_offset % _Alignof(ElfW(Sym)) ||
        table->sh_link >= file->head->e_shnum)
        return false;
    for (size_t i = 0; i < table->sh_size / sizeof *symbols; i++) {
        if (!covers(&symbols[i], section, address))
            continue;
        snprintf(ret_symbol, SYMBOL_ROOM - 20, "%s",
                 string_at(file, &file->sections[table->sh_link], symbols[i].st_name));
        if (address > symbols[i].st_value)
            sprintf(ret_symbol + strlen(ret_symbol), "+0x%llx", (unsigned long long)(address - symbols[i].st_value));
        return true;
    }
    return false;
}

/* False if there is none; the address then takes its place. */
static bool find_symbol(const struct file *file, ElfW(Half) section, ElfW(Addr) address, char ret_symbol[SYMBOL_ROOM])
{
    for (ElfW(Half) i = 0; i < file->head->e_shnum; i++) {
        ElfW(Word) type = file->sections[i].sh_type;

        if ((type == SHT_SYMTAB || type == SHT_DYNSYM) &&
            find_symbol_in(file, &file->sections[i], section, address, ret_symbol))
            return true;
    }
    snprintf(ret_symbol, SYMBOL_ROOM, "0x%llx", (unsigned long long)address);
    return false;
}

/* ---- names ------------------------------------------------------------------------------- */

static void check(const struct file *file, struct list *list, const struct found *found)
{
    if (!found->is_automatic)
        return;
    for (size_t i = 0; i < list->count; i++) {
        if (list->entries[i].is_automatic && strcmp(list->entries[i].name, found->name) == 0) {
            fault(file->path, found->name,
                  "two objects have this automatic name: give each a name, or compile their source files with "
                  "different -DDMUTEX_UNIT");
            return;
        }
    }
}

static bool keep(struct list *list, const struct found *found)
{
    struct found *entries = reallocarray(list->entries, list->count + 1, sizeof *entries);

    if (!entries) {
        free(found->symbol);
        return false;
    }
    list->entries = entries;
    entries[list->count++] = *found;
    return true;
}

static void clear(struct list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->entries[i].symbol);
    free(list->entries);
}

static const char *word_of(enum dm_literal_kind kind)
{
    return kind == DM_LITERAL_MUTEX ? "mutex" : document ? "condition" : "cond";
}

static void print(const struct file *file, const struct found *found)
{
    if (!document) {
        print_text(stdout, found->name);
        printf("\t%s\t", word_of(found->kind));
        print_text(stdout, file->path);
        putchar('\t');
        print_text(stdout, found->symbol);
        putchar('\n');
        return;
    }
    json_open(document, NULL, '{');
    json_name(document, found->name);
    json_text(document, "kind", word_of(found->kind));
    json_bool(document, "automatic", found->is_automatic);
    json_text(document, "file", file->path);
    json_text(document, "symbol", found->symbol);
    json_close(document);
}

/* Prints the object at the address.  False without memory. */
static bool take(const struct file *file, struct list *list, ElfW(Half) section, ElfW(Addr) address, void *object)
{
    enum dm_literal_kind kind = dm_literal_at(object);
    char symbol[SYMBOL_ROOM];
    struct found found = { .is_automatic = *dm_literal_named(object, kind) == DM_NAMED_AUTOMATICALLY, .kind = kind };

    strcpy(found.name, dm_literal_name(object, kind));
    if (found.is_automatic && !dm_literal_normalise(found.name) && !is_comparing)
        fault(file->path, found.name,
              "depends on the build directory: compile with -fmacro-prefix-map=DIRECTORY/= or -DDMUTEX_UNIT");
    found.is_address = !find_symbol(file, section, address, symbol);
    found.symbol = strdup(symbol);
    if (!found.symbol)
        return false;
    if (!is_comparing) {
        check(file, list, &found);
        print(file, &found);
    }
    return keep(list, &found);
}

/* Searches a copy that is aligned as the section is in memory. */
static bool search(const struct file *file, struct list *list, ElfW(Half) number)
{
    const ElfW(Shdr) *section = &file->sections[number];
    size_t shift = section->sh_addr % DM_LITERAL_ALIGN;
    bool is_good = true;
    unsigned char *copy;

    if (section->sh_type != SHT_PROGBITS || !(section->sh_flags & SHF_WRITE) ||
        !is_inside(file, section->sh_offset, section->sh_size))
        return true;
    copy = calloc(1, shift + section->sh_size + 1);
    if (!copy)
        return false;
    memcpy(copy + shift, file->bytes + section->sh_offset, section->sh_size);
    for (size_t at = shift ? DM_LITERAL_ALIGN : 0; is_good && at + DM_LITERAL_SIZE <= shift + section->sh_size;) {
        bool is_object = dm_literal_at(copy + at) != DM_LITERAL_NONE;

        if (is_object)
            is_good = take(file, list, number, section->sh_addr + at - shift, copy + at);
        at += is_object ? DM_LITERAL_SIZE : DM_LITERAL_ALIGN;
    }
    free(copy);
    return is_good;
}

/* Fills the list, which clear() frees. */
static int read_names(const char *path, struct list *list)
{
    const char *sentence;
    bool is_good = true;
    struct file file = { .path = path };

    sentence = open_file(&file);
    if (sentence)
        return complain(path, sentence);
    for (ElfW(Half) i = 0; is_good && i < file.head->e_shnum; i++)
        is_good = search(&file, list, i);
    munmap((void *)file.bytes, file.size);
    return is_good ? 0 : complain(path, strerror(ENOMEM));
}

int names_print(const char *caller, char *const *paths, struct json *json)
{
    int result = 0;

    program = caller;
    document = json;
    for (; *paths; paths++) {
        struct list list = { NULL, 0 };
        int error = read_names(*paths, &list);

        clear(&list);
        result = result ? result : error;
    }
    return result ? result : is_faulty ? NAMES_FAULT : 0;
}

/* ---- two builds -------------------------------------------------------------------------- */

static const struct found *find(const struct list *list, const struct found *like)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct found *found = &list->entries[i];

        if (found->is_automatic && found->kind == like->kind && strcmp(found->name, like->name) == 0)
            return found;
    }
    return NULL;
}

/* One of the two is NULL if the name is not in that build. */
static void print_difference(const struct found *old, const struct found *new)
{
    const struct found *any = old ? old : new;

    if (!document) {
        print_text(stdout, any->name);
        printf("\t%s\t%s\t%s\n", word_of(any->kind), old ? old->symbol : "-", new ? new->symbol : "-");
        return;
    }
    json_open(document, NULL, '{');
    json_name(document, any->name);
    json_text(document, "kind", word_of(any->kind));
    if (old)
        json_text(document, "old", old->symbol);
    if (new)
        json_text(document, "new", new->symbol);
    json_close(document);
}

/* Builds are compared by symbols: without them nobody can tell which object a name belongs to. */
static bool has_symbols(const char *path, const struct list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->entries[i].is_automatic && list->entries[i].is_address) {
            complain(path, "has no symbols: compare the files before they are stripped");
            return false;
        }
    }
    return true;
}

/* The length without the number that the compiler appends to a function's static variable, as in "lock.0". */
static size_t length_of_base(const char *symbol)
{
    const char *dot = strrchr(symbol, '.');

    return dot && dot[1] && strspn(dot + 1, "0123456789") == strlen(dot + 1) ? (size_t)(dot - symbol) : strlen(symbol);
}

static size_t count_of_base(const struct list *list, const char *symbol)
{
    size_t length = length_of_base(symbol), count = 0;

    for (size_t i = 0; i < list->count; i++)
        count +=
            length_of_base(list->entries[i].symbol) == length && strncmp(list->entries[i].symbol, symbol, length) == 0;
    return count;
}

/* If the number of functions with such a variable has changed, "lock.0" may belong to another function. */
static bool is_same_variable(const struct list *old, const struct list *new, const char *was, const char *is)
{
    return strcmp(was, is) == 0 &&
           (length_of_base(was) == strlen(was) || count_of_base(old, was) == count_of_base(new, was));
}

static int compare(const struct list *old, const struct list *new)
{
    int result = 0;

    for (size_t i = 0; i < old->count; i++) {
        const struct found *was = &old->entries[i], *is = find(new, was);

        if (!was->is_automatic || (is && is_same_variable(old, new, was->symbol, is->symbol)))
            continue;
        print_difference(was, is);
        result = is ? NAMES_FAULT : result;
    }
    for (size_t i = 0; i < new->count; i++) {
        const struct found *is = &new->entries[i];

        if (is->is_automatic && !find(old, is))
            print_difference(NULL, is);
    }
    return result;
}

int names_diff(const char *caller, const char *old, const char *new, struct json *json)
{
    struct list before = { NULL, 0 }, after = { NULL, 0 };
    int result;

    program = caller;
    document = json;
    is_comparing = true;
    result = read_names(old, &before);
    if (!result)
        result = read_names(new, &after);
    if (!result)
        result = has_symbols(old, &before) && has_symbols(new, &after) ? compare(&before, &after) : NAMES_TROUBLE;
    clear(&before);
    clear(&after);
    return result;
}
