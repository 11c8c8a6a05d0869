/* SPDX-License-Identifier: BSD-2-Clause */
#include "binary.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#include <glib.h>

#define OUR_CLASS (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32)
#define OUR_ORDER (G_BYTE_ORDER == G_LITTLE_ENDIAN ? ELFDATA2LSB : ELFDATA2MSB)
#define SCRIPT_ROOM 256 /* as much of the #! line as the kernel reads */

/*
 * All or nothing: a truncated file has no header here. No offset or count in the file is trusted; this read bounds
 * them.
 */
static bool read_at(int fd, void *to, size_t size, uint64_t offset)
{
    return pread(fd, to, size, (off_t)offset) == (ssize_t)size;
}

/* ---- ELF --------------------------------------------------------------------------------- */

/* The next segment of this type, from *index on; false if there are no more. */
static bool next_segment(int fd, const ElfW(Ehdr) *header, unsigned type, unsigned *index, ElfW(Phdr) *ret_segment)
{
    if (header->e_phentsize != sizeof *ret_segment)
        return false;
    while (*index < header->e_phnum) {
        uint64_t offset = header->e_phoff + (*index)++ * sizeof *ret_segment;

        if (!read_at(fd, ret_segment, sizeof *ret_segment, offset))
            return false;
        if (ret_segment->p_type == type)
            return true;
    }
    return false;
}

/* The path in PT_INTERP; NULL if there is none. */
static char *read_loader(int fd, const ElfW(Ehdr) *header)
{
    char path[4096] = "";
    ElfW(Phdr) segment;
    unsigned index = 0;

    if (!next_segment(fd, header, PT_INTERP, &index, &segment) || segment.p_filesz >= sizeof path ||
        !read_at(fd, path, segment.p_filesz, segment.p_offset))
        return NULL;
    return g_strdup(path);
}

static void read_elf(int fd, const ElfW(Ehdr) *header, struct binary *binary)
{
    binary->kind = BINARY_ELF;
    binary->elf_class = header->e_ident[EI_CLASS];
    binary->byte_order = header->e_ident[EI_DATA];
    binary->machine = header->e_machine; /* at the same offset in both classes */
    if (binary->byte_order != OUR_ORDER)
        binary->machine = GUINT16_SWAP_LE_BE(header->e_machine);
    else if (binary->elf_class == OUR_CLASS)
        binary->interpreter = read_loader(fd, header);
}

/*
 * Compares by subtraction, because the sum of two numbers from a rule may overflow. Uses p_memsz, not p_filesz: a mutex
 * that starts as zeros has no bytes in the file.
 */
bool binary_is_writable(const char *path, uint64_t offset, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ElfW(Ehdr) header;
    ElfW(Phdr) segment;
    unsigned index = 0;
    bool is_found = false;

    if (fd < 0)
        return false;
    if (read_at(fd, &header, sizeof header, 0))
        while (!is_found && next_segment(fd, &header, PT_LOAD, &index, &segment))
            is_found = (segment.p_flags & PF_W) && offset >= segment.p_vaddr && size <= segment.p_memsz &&
                       offset - segment.p_vaddr <= segment.p_memsz - size;
    close(fd);
    return is_found;
}

char *binary_machine(const struct binary *binary)
{
    static const struct {
        unsigned machine;
        const char *name;
    } names[] = { { EM_386, "i386" },    { EM_X86_64, "x86-64" }, { EM_ARM, "arm" },   { EM_AARCH64, "arm64" },
                  { EM_RISCV, "riscv" }, { EM_PPC64, "ppc64" },   { EM_S390, "s390" }, { EM_MIPS, "mips" } };
    int bits = binary->elf_class == ELFCLASS64 ? 64 : 32;

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
        if (names[i].machine == binary->machine)
            return g_strdup_printf("%s, %d bits", names[i].name, bits);
    return g_strdup_printf("machine %u, %d bits", binary->machine, bits);
}

/* ---- scripts ----------------------------------------------------------------------------- */

/* `#! /bin/sh -e`: the kernel takes the first word, and everything after it as one argument. */
static void read_script(const char *line, struct binary *binary)
{
    g_autofree char *words = g_strstrip(g_strndup(line + 2, strcspn(line + 2, "\n")));
    size_t first = strcspn(words, " \t");

    binary->kind = BINARY_SCRIPT;
    binary->interpreter = g_strndup(words, first);
    if (words[first])
        binary->argument = g_strdup(g_strchug(words + first));
}

/* ---- both -------------------------------------------------------------------------------- */

/*
 * O_NONBLOCK, because opening a FIFO would wait. A file of the other class has e_machine at the same offset and is not
 * read further: its offsets have another size.
 */
void binary_read(const char *path, struct binary *ret_binary)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    union {
        ElfW(Ehdr) elf;
        char line[SCRIPT_ROOM + 1];
    } start = { .line = "" };
    ssize_t length;

    *ret_binary = (struct binary){ .kind = BINARY_UNREADABLE };
    if (fd < 0)
        return;
    length = pread(fd, start.line, SCRIPT_ROOM, 0);
    if (length >= 0)
        ret_binary->kind = BINARY_OTHER;
    if (length >= (ssize_t)sizeof(Elf32_Ehdr) && memcmp(start.line, ELFMAG, SELFMAG) == 0)
        read_elf(fd, &start.elf, ret_binary);
    else if (length > 2 && memcmp(start.line, "#!", 2) == 0)
        read_script(start.line, ret_binary);
    close(fd);
}

void binary_clear(struct binary *binary)
{
    g_free(binary->interpreter);
    g_free(binary->argument);
    *binary = (struct binary){ .kind = BINARY_OTHER };
}
