/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names: the two lines of an input. Each name is taken, or refused by a rule that a sentence states. Two names that are
 * taken share no key, whether of mutexes or conditions.
 */
#include <errno.h>
#include <string.h>

#include <dmutex/dmutex.h>

#include "fuzz.h"
#include "stores/redis/wire/keys.h"

#define NAMES 2

static const char *const seeds[] = {
    "group/leaf\ngroup/other",
    "word\nword/",
    "a/b/c\na/b%2Fc",
    "{tag}/x\n%7Btag%7D/x",
    "a b/c d\na+b/c+d",
    "~1234/x\n~1234",
    "\xc3\xa4/\xe2\x82\xac\n\xff/\x80",
    "g/%\ng/%25",
    NULL,
};

static const char *const words[] = {
    "/",       "//",
    "\n",      "%",
    "%2F",     "%2f",
    "%25",     "{",
    "}",       ":",
    "}:lock:", ":{",
    "~",       ".",
    "_",       "-",
    " ",       "lock",
    "state",   "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789",
    NULL,
};

const struct fuzzer fuzzer = { "names", seeds, words, 60000, 4000000 };

static const char usual[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-%";

/* The rule of the page of dmutex_init_np(). */
static int is_name(const char *name)
{
    size_t length = strlen(name), group = strcspn(name, "/");

    return length > 0 && length <= DMUTEX_NAME_MAX_NP && group > 0 && (group == length || group + 1 < length);
}

static void must_be_kept(const char *name)
{
    char back[DMUTEX_NAME_MAX_NP + 1];
    dmutex_t mutex;
    dcond_t cond;
    int wanted = is_name(name) ? 0 : EINVAL;

    must(dmutex_init_np(&mutex, name, NULL) == wanted);
    must(dcond_init_np(&cond, name, NULL) == wanted);
    if (wanted)
        return;
    must(dmutex_getname_np(&mutex, back, sizeof back) == 0 && strcmp(back, name) == 0);
    must(dmutex_getname_np(&mutex, back, strlen(name)) == ERANGE);
    must(dcond_getname_np(&cond, back, sizeof back) == 0 && strcmp(back, name) == 0);
}

/* dmutex:{GROUP}:KIND:LEAF, with one tag, of usual bytes. */
static void must_be_key(const char *key, size_t length)
{
    const char *group = key + strlen("dmutex:{"), *kind = strstr(key, "}:"), *leaf;

    must(strlen(key) == length && strncmp(key, "dmutex:{", 8) == 0 && kind && kind > group);
    must(strspn(group, usual) == (size_t)(kind - group));
    leaf = strchr(kind + 2, ':');
    must(leaf && strspn(leaf + 1, usual) == strlen(leaf + 1));
}

static const struct dm_naming one_server = { "dmutex", "dmutex:inbox:" };

static struct dm_place *keys_of(const char *name, int is_condition)
{
    struct dm_place *keys =
        is_condition ? dm_keys_new_condition(&one_server, NULL, name, 0) : dm_keys_new(&one_server, name, 0);

    must(keys);
    for (int i = 0; i < (is_condition ? (int)DM_COND_KEY_COUNT : (int)DM_KEY_COUNT); i++)
        must_be_key(keys->text[i], keys->length[i]);
    return keys;
}

static size_t tag_of(const char *key)
{
    return strcspn(key, "}");
}

static void must_be_apart(const char *one, const char *other)
{
    struct dm_place *a = keys_of(one, 0), *b = keys_of(other, 0), *c = keys_of(one, 1);
    size_t group = strcspn(one, "/"), tag = tag_of(a->text[0]);
    int is_one_group = group == strcspn(other, "/") && strncmp(one, other, group) == 0;

    for (int i = 0; i < DM_KEY_COUNT; i++) {
        must((strcmp(a->text[i], b->text[i]) == 0) == (strcmp(one, other) == 0));
        must(strcmp(a->text[i], c->text[0]) != 0 && strcmp(a->text[i], c->text[1]) != 0);
    }
    must((tag == tag_of(b->text[0]) && strncmp(a->text[0], b->text[0], tag) == 0) == is_one_group);
    must(strncmp(a->text[0], c->text[0], tag + 1) == 0); /* one slot of a cluster */
    free(a);
    free(b);
    free(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    char names[FUZZ_INPUT_MAX + 1], *second;

    if (length > FUZZ_INPUT_MAX)
        return 0;
    strcpy(names, fuzz_text(bytes, length));
    second = strchr(names, '\n');
    if (!second)
        return 0;
    *second++ = '\0';
    must_be_kept(names);
    must_be_kept(second);
    if (is_name(names) && is_name(second))
        must_be_apart(names, second);
    return 0;
}
