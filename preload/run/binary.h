/* SPDX-License-Identifier: BSD-2-Clause */
/* What kind of file it is to the kernel that executes it. */
#ifndef DM_RUN_BINARY_H
#define DM_RUN_BINARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum binary_kind {
    BINARY_UNREADABLE, /* errno says why */
    BINARY_OTHER,      /* none of the kinds above */
    BINARY_ELF,
    BINARY_SCRIPT
};

struct binary {
    enum binary_kind kind;
    unsigned char elf_class, byte_order; /* as in e_ident */
    unsigned machine;                    /* EM_... */
    char *interpreter;                   /* the script's, or the dynamic loader's path; NULL: a static program */
    char *argument;                      /* of the script's interpreter; may be NULL */
};

/* Reads the file without running it. An ELF file of another class or byte order than ours has no interpreter here. */
void binary_read(const char *path, struct binary *ret_binary);
void binary_clear(struct binary *binary);

/* True if these `size` bytes lie in memory that the file, an ELF file of our class, loads as writable. */
bool binary_is_writable(const char *path, uint64_t offset, size_t size);

/* "x86-64", or "machine 40". The caller frees it. */
char *binary_machine(const struct binary *binary);

#endif
