/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an ELF file says about itself: symbols, with or without separate debug information, and the
 * build-id.  Reads by mmap and calls no malloc, for the module does this before main().
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
    ELF_NO_FILE,   /* not there, not readable, not ELF of this machine */
    ELF_NO_SYMBOL, /* none of that name, or the file is stripped */
    ELF_NOT_UNIQUE, /* several: static ones of different source files */
    ELF_NO_OBJECT  /* a function, a thread-local object, or not in writable memory */
};

/* Where the files are in which a distribution keeps what it stripped; tests have a place of their own. */
extern const char *elf_debug_folder;

/*
 * Where the object of that name lies, relative to where the file is loaded: in .symtab, then .dynsym,
 * then in the debug file of the same build-id.
 */
enum elf_found elf_find_symbol(const char *path, const char *symbol, uint64_t *ret_offset);

/* Is this variable one of those that the loader puts together with others of its name? */
bool elf_is_exported(const char *path, const char *symbol);

/* Where the program keeps its copy of that library's variable (a copy relocation); false: it has none. */
bool elf_find_copy(const char *path, const char *symbol, uint64_t *ret_offset);

/* What stands at that offset, as `SYMBOL` or `SYMBOL+0xOFFSET`; false if no symbol covers it. */
bool elf_name_offset(const char *path, uint64_t offset, char *ret_name, size_t room);

/* False, and empty: it has none. */
bool elf_build_id(const char *path, char ret_hex[ELF_BUILD_ID_ROOM]);

#endif
