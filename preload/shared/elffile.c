/* SPDX-License-Identifier: BSD-2-Clause */
#include "elffile.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "text.h"

#if __SIZEOF_POINTER__ == 8
#define OUR_CLASS ELFCLASS64
#define SYMBOL_TYPE(symbol) ELF64_ST_TYPE((symbol)->st_info)
#else
#define OUR_CLASS ELFCLASS32
#define SYMBOL_TYPE(symbol) ELF32_ST_TYPE((symbol)->st_info)
#endif

const char *elf_debug_folder = "/usr/lib/debug/.build-id";

/* A mapped file. Nothing in it is trusted: each range is checked before it is read. */
struct image {
    const char *bytes;
    size_t size;
    const ElfW(Ehdr) *head;
};

/* ---- reading ----------------------------------------------------------------------------- */

static const void *range(const struct image *image, uint64_t offset, uint64_t size)
{
    if (offset > image->size || size > image->size - offset)
        return NULL;
    return image->bytes + offset;
}

/* For records: NULL if no record can be there. */
static const void *records(const struct image *image, uint64_t offset, uint64_t size)
{
    return offset % _Alignof(ElfW(Addr)) == 0 ? range(image, offset, size) : NULL;
}

static void close_image(struct image *image)
{
    munmap((void *)image->bytes, image->size);
}

/* Maps an ELF file for this kind of machine. */
static bool open_image(struct image *image, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not block */
    struct stat status;
    void *bytes = MAP_FAILED;

    if (fd < 0)
        return false;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0)
        bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (bytes == MAP_FAILED)
        return false;
    *image = (struct image){ .bytes = bytes, .size = (size_t)status.st_size };
    image->head = range(image, 0, sizeof *image->head);
    if (image->head && memcmp(image->head->e_ident, ELFMAG, SELFMAG) == 0 &&
        image->head->e_ident[EI_CLASS] == OUR_CLASS)
        return true;
    close_image(image);
    return false;
}

static const ElfW(Shdr) *section(const struct image *image, unsigned index)
{
    const ElfW(Ehdr) *head = image->head;

    if (index >= head->e_shnum || head->e_shentsize != sizeof(ElfW(Shdr)))
        return NULL;
    return records(image, head->e_shoff + index * sizeof(ElfW(Shdr)), sizeof(ElfW(Shdr)));
}

static const ElfW(Phdr) *segment(const struct image *image, unsigned index)
{
    const ElfW(Ehdr) *head = image->head;

    if (index >= head->e_phnum || head->e_phentsize != sizeof(ElfW(Phdr)))
        return NULL;
    return records(image, head->e_phoff + index * sizeof(ElfW(Phdr)), sizeof(ElfW(Phdr)));
}

/* ---- symbols ----------------------------------------------------------------------------- */

/* .symtab or .dynsym, with the string table. */
struct symbols {
    const ElfW(Sym) *first;
    size_t count;
    const char *texts;
    size_t texts_size;
};

static bool find_symbols(const struct image *image, unsigned type, struct symbols *ret_symbols)
{
    for (unsigned i = 0; i < image->head->e_shnum; i++) {
        const ElfW(Shdr) *table = section(image, i), *texts;

        if (!table || table->sh_type != type)
            continue;
        texts = section(image, table->sh_link);
        ret_symbols->first = records(image, table->sh_offset, table->sh_size);
        ret_symbols->count = table->sh_size / sizeof(ElfW(Sym));
        ret_symbols->texts = texts ? range(image, texts->sh_offset, texts->sh_size) : NULL;
        ret_symbols->texts_size = texts ? texts->sh_size : 0;
        if (ret_symbols->first && ret_symbols->texts && ret_symbols->texts_size > 0 &&
            ret_symbols->texts[ret_symbols->texts_size - 1] == '\0')
            return true;
    }
    return false;
}

static const char *name_of(const struct symbols *symbols, const ElfW(Sym) *symbol)
{
    return symbol->st_name < symbols->texts_size ? symbols->texts + symbol->st_name : "";
}

/* True if the address is in memory that the program may write. */
static bool is_writable(const struct image *image, uint64_t address)
{
    const ElfW(Phdr) *at;

    for (unsigned i = 0; (at = segment(image, i)); i++)
        if (at->p_type == PT_LOAD && (at->p_flags & PF_W) && address >= at->p_vaddr &&
            address - at->p_vaddr < at->p_memsz)
            return true;
    return false;
}

static bool is_object(const struct image *image, const ElfW(Sym) *symbol)
{
    return (SYMBOL_TYPE(symbol) == STT_OBJECT || SYMBOL_TYPE(symbol) == STT_NOTYPE) && symbol->st_shndx != SHN_UNDEF &&
           is_writable(image, symbol->st_value);
}

/* The hashes of the wanted names, as a filter of 4096 bits, one for each hash. */
struct filter {
    uint64_t words[64];
};

static uint32_t hash_of(const char *name)
{
    uint32_t hash = 5381;

    while (*name)
        hash = hash * 33 + (unsigned char)*name++;
    return hash;
}

static bool hits(const struct filter *filter, uint32_t hash)
{
    return filter->words[hash >> 6 & 63] >> (hash & 63) & 1;
}

/* Enters the wishes that have not been found yet; false if there are none. */
static bool open_wishes(struct elf_wish *wishes, size_t count, struct filter *ret_filter)
{
    bool is_any = false;

    *ret_filter = (struct filter){ { 0 } };
    for (struct elf_wish *wish = wishes; wish < wishes + count; wish++) {
        wish->is_open = wish->symbol && wish->found == ELF_NO_SYMBOL;
        if (!wish->is_open)
            continue;
        wish->hash = hash_of(wish->symbol);
        ret_filter->words[wish->hash >> 6 & 63] |= UINT64_C(1) << (wish->hash & 63);
        is_any = true;
    }
    return is_any;
}

/* Refuses several static variables with one name, but accepts several names of one variable. */
static void take(struct elf_wish *wish, const struct image *image, const ElfW(Sym) *symbol)
{
    if (!is_object(image, symbol)) {
        if (wish->found == ELF_NO_SYMBOL)
            wish->found = ELF_NO_OBJECT;
    } else if (wish->found == ELF_FOUND && wish->offset != symbol->st_value) {
        wish->found = ELF_NOT_UNIQUE;
    } else if (wish->found != ELF_NOT_UNIQUE) {
        wish->found = ELF_FOUND;
        wish->offset = symbol->st_value;
        wish->size = symbol->st_size;
    }
}

static void find_in(const struct image *image, unsigned type, struct elf_wish *wishes, size_t count)
{
    struct symbols symbols;
    struct filter filter;

    if (!open_wishes(wishes, count, &filter) || !find_symbols(image, type, &symbols))
        return;
    for (size_t i = 0; i < symbols.count; i++) {
        const ElfW(Sym) *symbol = &symbols.first[i];
        const char *name = name_of(&symbols, symbol);
        uint32_t hash = symbol->st_shndx == SHN_UNDEF ? 0 : hash_of(name);

        if (symbol->st_shndx == SHN_UNDEF || !hits(&filter, hash))
            continue;
        for (struct elf_wish *wish = wishes; wish < wishes + count; wish++)
            if (wish->is_open && wish->hash == hash && strcmp(wish->symbol, name) == 0)
                take(wish, image, symbol);
    }
}

/* ---- the debug file ---------------------------------------------------------------------- */

/* Notes consist of 32-bit words. */
static const void *note_range(const struct image *image, uint64_t offset, uint64_t size)
{
    return offset % sizeof(ElfW(Word)) == 0 ? range(image, offset, size) : NULL;
}

static bool read_build_id(const struct image *image, char ret_hex[ELF_BUILD_ID_ROOM])
{
    const ElfW(Phdr) *at;

    ret_hex[0] = '\0';
    for (unsigned i = 0; (at = segment(image, i)); i++) {
        const char *notes = at->p_type == PT_NOTE ? note_range(image, at->p_offset, at->p_filesz) : NULL;
        size_t left = notes ? at->p_filesz : 0;

        while (left > sizeof(ElfW(Nhdr))) {
            const ElfW(Nhdr) *note = (const void *)notes;
            size_t name = (note->n_namesz + 3u) & ~3u, text = (note->n_descsz + 3u) & ~3u;
            size_t size = sizeof *note + name + text;

            if (sizeof *note + name + note->n_descsz > left)
                break;
            if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && memcmp(note + 1, "GNU", 4) == 0 &&
                note->n_descsz * 2 < ELF_BUILD_ID_ROOM) {
                const unsigned char *id = (const void *)(notes + sizeof *note + name);

                for (size_t byte = 0; byte < note->n_descsz; byte++) {
                    *ret_hex++ = "0123456789abcdef"[id[byte] >> 4];
                    *ret_hex++ = "0123456789abcdef"[id[byte] & 15];
                }
                *ret_hex = '\0';
                return true;
            }
            notes += size;
            left -= size < left ? size : left; /* the last note need not be padded */
        }
    }
    return false;
}

static bool open_debug_image(struct image *image, const struct image *stripped)
{
    char id[ELF_BUILD_ID_ROOM], path[512], debug_id[ELF_BUILD_ID_ROOM];
    struct text text = text_in(path, sizeof path);

    if (!read_build_id(stripped, id))
        return false;
    text_add(&text, elf_debug_folder);
    text_add(&text, "/");
    text_add_bytes(&text, id, 2);
    text_add(&text, "/");
    text_add(&text, id + 2);
    text_add(&text, ".debug");
    if (!open_image(image, path))
        return false;
    if (read_build_id(image, debug_id) && strcmp(id, debug_id) == 0)
        return true;
    close_image(image);
    return false;
}

/* ---- questions --------------------------------------------------------------------------- */

static void begin_with(struct elf_wish *wishes, size_t count, enum elf_found found)
{
    for (size_t i = 0; i < count; i++)
        wishes[i].found = found;
}

void elf_find_symbols(const char *path, struct elf_wish *wishes, size_t count)
{
    struct image image, debug;
    struct filter filter;

    begin_with(wishes, count, ELF_NO_FILE);
    if (!open_image(&image, path))
        return;
    begin_with(wishes, count, ELF_NO_SYMBOL);
    find_in(&image, SHT_SYMTAB, wishes, count);
    find_in(&image, SHT_DYNSYM, wishes, count);
    if (open_wishes(wishes, count, &filter) && open_debug_image(&debug, &image)) {
        find_in(&debug, SHT_SYMTAB, wishes, count);
        close_image(&debug);
    }
    close_image(&image);
}

void elf_find_exported(const char *path, struct elf_wish *wishes, size_t count)
{
    struct image image;

    begin_with(wishes, count, ELF_NO_FILE);
    if (!open_image(&image, path))
        return;
    begin_with(wishes, count, ELF_NO_SYMBOL);
    find_in(&image, SHT_DYNSYM, wishes, count);
    close_image(&image);
}

enum elf_found elf_find_symbol(const char *path, const char *symbol, uint64_t *ret_offset)
{
    struct elf_wish wish = { .symbol = symbol };

    elf_find_symbols(path, &wish, 1);
    if (wish.found == ELF_FOUND)
        *ret_offset = wish.offset;
    return wish.found;
}

bool elf_find_copy(const char *path, const char *symbol, uint64_t *ret_offset)
{
    struct elf_wish wish = { .symbol = symbol };

    elf_find_exported(path, &wish, 1);
    if (wish.found == ELF_FOUND)
        *ret_offset = wish.offset;
    return wish.found == ELF_FOUND;
}

/* The object that covers the offset; if it has several names, the first. */
static bool name_in(const struct image *image, unsigned type, uint64_t offset, struct text *name)
{
    struct symbols symbols;

    if (!find_symbols(image, type, &symbols))
        return false;
    for (size_t i = 0; i < symbols.count; i++) {
        const ElfW(Sym) *symbol = &symbols.first[i];

        if (!is_object(image, symbol) || offset < symbol->st_value || offset - symbol->st_value >= symbol->st_size ||
            !*name_of(&symbols, symbol))
            continue;
        text_add(name, name_of(&symbols, symbol));
        if (offset > symbol->st_value) {
            text_add(name, "+");
            text_add_hex(name, offset - symbol->st_value);
        }
        return !name->is_cut;
    }
    return false;
}

bool elf_name_offset(const char *path, uint64_t offset, char *ret_name, size_t room)
{
    struct text name = text_in(ret_name, room);
    struct image image, debug;
    bool is_found;

    if (!open_image(&image, path))
        return false;
    is_found = name_in(&image, SHT_SYMTAB, offset, &name) || name_in(&image, SHT_DYNSYM, offset, &name);
    if (!is_found && open_debug_image(&debug, &image)) {
        is_found = name_in(&debug, SHT_SYMTAB, offset, &name);
        close_image(&debug);
    }
    close_image(&image);
    return is_found;
}

bool elf_build_id(const char *path, char ret_hex[ELF_BUILD_ID_ROOM])
{
    struct image image;
    bool has_id;

    ret_hex[0] = '\0';
    if (!open_image(&image, path))
        return false;
    has_id = read_build_id(&image, ret_hex);
    close_image(&image);
    return has_id;
}

/* ---- what the file needs ----------------------------------------------------------------- */

/* Where in the file the bytes are that are loaded at the address. */
static const char *at_address(const struct image *image, uint64_t address, uint64_t size)
{
    const ElfW(Phdr) *at;

    for (unsigned i = 0; (at = segment(image, i)); i++)
        if (at->p_type == PT_LOAD && address >= at->p_vaddr && address - at->p_vaddr < at->p_filesz &&
            size <= at->p_filesz - (address - at->p_vaddr))
            return range(image, at->p_offset + (address - at->p_vaddr), size);
    return NULL;
}

/* The entries of PT_DYNAMIC, up to DT_NULL. Returns how many there are. */
static size_t find_dynamic(const struct image *image, const ElfW(Dyn) **ret_first)
{
    const ElfW(Phdr) *at;
    size_t count = 0;

    for (unsigned i = 0; (at = segment(image, i)); i++) {
        if (at->p_type != PT_DYNAMIC)
            continue;
        *ret_first = records(image, at->p_offset, at->p_filesz);
        while (*ret_first && (count + 1) * sizeof **ret_first <= at->p_filesz && (*ret_first)[count].d_tag != DT_NULL)
            count++;
        break;
    }
    return count;
}

static uint64_t value_of(const ElfW(Dyn) *entries, size_t count, int64_t tag)
{
    for (size_t i = 0; i < count; i++)
        if (entries[i].d_tag == tag)
            return entries[i].d_un.d_val;
    return 0;
}

static void tell_texts(const struct image *image, elf_text_fn tell, void *user)
{
    const ElfW(Dyn) *entries = NULL;
    size_t count = find_dynamic(image, &entries);
    uint64_t size = value_of(entries, count, DT_STRSZ);
    const char *texts = at_address(image, value_of(entries, count, DT_STRTAB), size);

    if (!texts || size == 0 || texts[size - 1] != '\0')
        return;
    for (size_t i = 0; i < count; i++)
        if ((entries[i].d_tag == DT_NEEDED || entries[i].d_tag == DT_RPATH || entries[i].d_tag == DT_RUNPATH) &&
            entries[i].d_un.d_val < size)
            tell(user, entries[i].d_tag, texts + entries[i].d_un.d_val);
}

bool elf_tell_needs(const char *path, elf_text_fn tell, void *user)
{
    struct image image;

    if (!open_image(&image, path))
        return false;
    tell_texts(&image, tell, user);
    close_image(&image);
    return true;
}
