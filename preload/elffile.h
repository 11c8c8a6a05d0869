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

/* A symbol that is looked for, and what came of it. */
struct elf_wish {
    const char *symbol; /* NULL: nothing is looked for here */
    enum elf_found found;
    uint64_t offset; /* FOUND: from where the file is loaded */
    uint64_t size;   /* FOUND: in bytes; 0: the file does not say */
    uint32_t hash;   /* while it is looked for */
    bool is_open;
};

/*
 * Where the objects of these names lie: in .symtab, then .dynsym, then in the debug file of the same
 * build-id.  Each is read once, however many are looked for.
 */
void elf_find_symbols(const char *path, struct elf_wish *wishes, size_t count);

/*
 * The same in .dynsym alone: of a library, which variables the loader puts together with others of their
 * names; of a program, where its copies of these are (copy relocations).
 */
void elf_find_exported(const char *path, struct elf_wish *wishes, size_t count);

/* Of one symbol. */
enum elf_found elf_find_symbol(const char *path, const char *symbol, uint64_t *ret_offset);
bool elf_find_copy(const char *path, const char *symbol, uint64_t *ret_offset);

/* What stands at that offset, as `SYMBOL` or `SYMBOL+0xOFFSET`; false if no symbol covers it. */
bool elf_name_offset(const char *path, uint64_t offset, char *ret_name, size_t room);

/*
 * What the file says to the dynamic loader: DT_NEEDED, DT_RPATH, DT_RUNPATH, in their order.  The text is valid
 * during the call.
 */
typedef void (*elf_text_fn)(void *user, int64_t tag, const char *text);

/* Tells all of them; false: no ELF file of this machine's kind. */
bool elf_tell_needs(const char *path, elf_text_fn tell, void *user);

/* False, and empty: it has none. */
bool elf_build_id(const char *path, char ret_hex[ELF_BUILD_ID_ROOM]);

#endif
