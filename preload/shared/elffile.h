/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads an ELF file: symbols, with or without separate debug information, and the build-id. Uses mmap and no malloc,
 * because the module reads files before main().
 */
#ifndef DM_PRELOAD_ELFFILE_H
#define DM_PRELOAD_ELFFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A build-id in lower-case hex. */
#define ELF_BUILD_ID_ROOM 65

enum elf_found {
    ELF_FOUND,
    ELF_NO_FILE,    /* the file is missing, not readable, or not ELF for this machine */
    ELF_NO_SYMBOL,  /* no symbol with this name, or the file is stripped */
    ELF_NOT_UNIQUE, /* more than one: static symbols of different source files */
    ELF_NO_OBJECT   /* a function, a thread-local object, or not in writable memory */
};

/* Where a distribution keeps separate debug files; tests use their own folder. */
extern const char *elf_debug_folder;

/* A symbol to look for, and the result. */
struct elf_wish {
    const char *symbol; /* NULL: nothing is looked for here */
    enum elf_found found;
    uint64_t offset; /* if found: relative to where the file is loaded */
    uint64_t size;   /* if found: in bytes; 0: the file does not say */
    uint32_t hash;   /* used during the search */
    bool is_open;
};

/*
 * Finds the objects with these names: in .symtab, then .dynsym, then in the debug file with the same build-id. Each is
 * read once, however many names are wanted.
 */
void elf_find_symbols(const char *path, struct elf_wish *wishes, size_t count);

/*
 * Searches only .dynsym. In a library, these are the variables that the loader merges with those of the same name
 * elsewhere; in a program, its copies of such variables (copy relocations).
 */
void elf_find_exported(const char *path, struct elf_wish *wishes, size_t count);

/* Finds one symbol. */
enum elf_found elf_find_symbol(const char *path, const char *symbol, uint64_t *ret_offset);
bool elf_find_copy(const char *path, const char *symbol, uint64_t *ret_offset);

/* Names what is at the offset, as `SYMBOL` or `SYMBOL+0xOFFSET`; false if no symbol covers it. */
bool elf_name_offset(const char *path, uint64_t offset, char *ret_name, size_t room);

/*
 * An entry for the dynamic loader: DT_NEEDED, DT_RPATH or DT_RUNPATH, in the file's order. The text is valid during the
 * call.
 */
typedef void (*elf_text_fn)(void *user, int64_t tag, const char *text);

/* Reports all entries; false if it is no ELF file for this kind of machine. */
bool elf_tell_needs(const char *path, elf_text_fn tell, void *user);

/* False, and an empty text, if the file has no build-id. */
bool elf_build_id(const char *path, char ret_hex[ELF_BUILD_ID_ROOM]);

#endif
