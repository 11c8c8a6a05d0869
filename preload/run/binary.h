/* SPDX-License-Identifier: BSD-2-Clause */
/* The kind of a file, for the kernel that executes the file. */
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
    char *argument;                      /* of the script's interpreter; NULL */
};

/* Reads the file without running the program. ELF of another class or order than ours: no interpreter. */
void binary_read(const char *path, struct binary *ret_binary);
void binary_clear(struct binary *binary);

/* True if so many bytes lie in memory that the file, ELF of our class, has loaded as writable. */
bool binary_is_writable(const char *path, uint64_t offset, size_t size);

/* "x86-64", or "machine 40". The caller frees the text. */
char *binary_machine(const struct binary *binary);

#endif
