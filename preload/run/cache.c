/* SPDX-License-Identifier: BSD-2-Clause */
#include "cache.h"

#include <stdint.h>
#include <string.h>

#define CACHE_FILE "/etc/ld.so.cache"
#define MAGIC "glibc-ld.so.cache1.1"

/*
 * The format that ldconfig(8) has written since glibc 2.2. Offsets of texts are relative to the header. The file is not
 * trusted: each count and offset is compared with the size. An older format, or a truncated file, is treated as
 * missing.
 */
struct head {
    char magic[20];
    uint32_t count, texts_size;
    uint32_t unused[5];
};

struct entry {
    int32_t flags;
    uint32_t name, path; /* offsets */
    uint32_t unused;
    uint64_t processor;
};

struct cache {
    const char *bytes;
    size_t size;
    const struct entry *entries;
    size_t count;
};

/* Returns "" if there is no text at the offset. */
static const char *text_at(const struct cache *cache, uint32_t offset)
{
    if (offset >= cache->size || !memchr(cache->bytes + offset, '\0', cache->size - offset))
        return "";
    return cache->bytes + offset;
}

/* Checks the count by division, because the product may overflow. */
static bool read_head(GMappedFile *file, struct cache *ret_cache)
{
    const char *bytes = g_mapped_file_get_contents(file);
    size_t size = g_mapped_file_get_length(file);
    const struct head *head = (const void *)bytes;

    if (size < sizeof *head || memcmp(head->magic, MAGIC, sizeof head->magic) != 0 ||
        head->count > (size - sizeof *head) / sizeof(struct entry))
        return false;
    *ret_cache = (struct cache){ bytes, size, (const void *)(head + 1), head->count };
    return true;
}

/*
 * Libraries for newer processors are in subfolders. Which of them the loader takes depends on the processor, so
 * has_variants() in loaded.c reports them instead.
 */
static bool is_plain(const char *path)
{
    return path[0] == '/' && !strstr(path, "/glibc-hwcaps/");
}

/*
 * ldconfig replaces the file, so the mapped bytes do not change. The flags of an entry are not read: is_fit() checks
 * the library itself.
 */
char *cache_find(const char *name, bool (*is_fit)(const char *path))
{
    g_autoptr(GMappedFile) file = g_mapped_file_new(CACHE_FILE, FALSE, NULL);
    struct cache cache;

    if (!file || !read_head(file, &cache))
        return NULL;
    for (size_t i = 0; i < cache.count; i++) {
        const char *path = text_at(&cache, cache.entries[i].path);

        if (strcmp(text_at(&cache, cache.entries[i].name), name) == 0 && is_plain(path) && is_fit(path))
            return g_strdup(path);
    }
    return NULL;
}
