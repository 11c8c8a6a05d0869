/* SPDX-License-Identifier: BSD-2-Clause */
#include "resolve.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "binary.h"
#include "loaded.h"
#include "shared/elffile.h"

/*
 * The files and symbols on which the rules are tried. The paths are borrowed from the list of loaded files, a rule or
 * the program.
 */
struct scene {
    const struct program *program; /* NULL: none was given */
    GPtrArray *loaded;             /* of struct loaded; empty without a program */
    unsigned count;
    const char **paths;      /* for each rule, the file of its module; NULL: none */
    struct elf_wish *wishes; /* for each rule, the result for its symbol in the file */
};

static struct resolution *resolution(enum finding finding, char *sentence)
{
    struct resolution *result = g_new(struct resolution, 1);

    *result = (struct resolution){ finding, sentence };
    return result;
}

static void free_resolution(gpointer pointer)
{
    struct resolution *result = pointer;

    g_free(result->sentence);
    g_free(result);
}

static bool is_of_module(const struct rule *rule)
{
    return rule->kind == RULE_SYMBOL || rule->kind == RULE_OFFSET;
}

/* ---- in one file ------------------------------------------------------------------------- */

/* NULL if found, otherwise why not, to be freed. */
static char *find_symbol(const struct rule *rule, const char *path, const struct elf_wish *wish, uint64_t *ret_offset)
{
    switch (wish->found) {
    case ELF_FOUND:
        *ret_offset = wish->offset + rule->offset;
        return NULL;
    case ELF_NO_FILE:
        return g_strdup_printf("%s cannot be read, or is not an ELF file for this machine", path);
    case ELF_NO_OBJECT:
        return g_strdup_printf("%s in %s is not a variable that all threads share and can write", rule->symbol, path);
    case ELF_NOT_UNIQUE:
        return g_strdup_printf("%s has several variables called %s: take the off: rule that dmutex-run --list shows "
                               "for the one you mean",
                               path, rule->symbol);
    case ELF_NO_SYMBOL:
        break;
    }
    return g_strdup_printf("%s has no symbol %s; is it spelled as by nm(1)? Of a stripped file, install the debug "
                           "symbols, or take the off: rule that dmutex-run --list shows",
                           path, rule->symbol);
}

/* A rule may give only the beginning of a build-id. */
static char *find_offset(const struct rule *rule, const char *path, uint64_t *ret_offset)
{
    char id[ELF_BUILD_ID_ROOM];

    *ret_offset = rule->offset;
    if (!elf_build_id(path, id))
        return g_strdup_printf("%s has no build-id, so nobody knows whether the offset fits", path);
    if (strncmp(id, rule->build_id, strlen(rule->build_id)) == 0)
        return NULL;
    return g_strdup_printf("%s is another build (build-id %s): take the rule that dmutex-run --list shows for this one",
                           path, id);
}

/* Memory that the program may not write cannot be a mutex: the rule means something else. */
static char *find_in(const struct rule *rule, const char *path, const struct elf_wish *wish, uint64_t *ret_offset)
{
    size_t size = rule->is_condition ? sizeof(pthread_cond_t) : sizeof(pthread_mutex_t);
    char *why =
        rule->kind == RULE_SYMBOL ? find_symbol(rule, path, wish, ret_offset) : find_offset(rule, path, ret_offset);

    if (!why && !binary_is_writable(path, *ret_offset, size))
        return g_strdup_printf("at 0x%" PRIx64 " of %s is not a %s: there is no memory that the program can write",
                               *ret_offset, path, rule->is_condition ? "condition variable" : "mutex");
    return why;
}

/* ---- in which file ----------------------------------------------------------------------- */

/*
 * The file that the rule means, found as the module finds it: it is loaded, or exists at the absolute path. The latter
 * is a library that the program may load later, with dlopen().
 */
static const char *module_of(const struct scene *scene, const struct rule *rule)
{
    for (guint i = 0; i < scene->loaded->len; i++) {
        const struct loaded *loaded = scene->loaded->pdata[i];

        if (rules_names_file(rule->module, loaded->path) || rules_names_file(rule->module, loaded->name))
            return loaded->path;
    }
    return rule->module[0] == '/' && access(rule->module, F_OK) == 0 ? rule->module : NULL;
}

/* No failure without Required=yes: a library may be loaded by dlopen(), which no file reveals. */
static struct resolution *not_loaded(const struct scene *scene, const struct rule *rule)
{
    if (!scene->program)
        return resolution(FINDING_LATER, g_strdup_printf("looked for in %s when a command is given", rule->module));
    if (rule->required == REQUIRED_YES)
        return resolution(
            FINDING_BAD,
            g_strdup_printf("%s does not load %s: correct the name, or leave Required=yes out if it does so "
                            "later",
                            scene->program->path, rule->module));
    return resolution(FINDING_LATER, g_strdup_printf("when %s is loaded", rule->module));
}

/* The loader chooses one of several builds, so nothing is known about the object in that build. */
static bool has_variants(const struct scene *scene, const char *path)
{
    for (guint i = 0; i < scene->loaded->len; i++) {
        const struct loaded *loaded = scene->loaded->pdata[i];

        if (strcmp(loaded->path, path) == 0)
            return loaded->has_variants;
    }
    return false;
}

/*
 * No mutex has the size of a read-write lock, but a structure that begins with a mutex may. So this is a doubt, not a
 * refusal.
 */
static bool is_like_rwlock(const struct rule *rule, const struct elf_wish *wish)
{
    return rule->kind == RULE_SYMBOL && rule->offset == 0 && !rule->is_condition &&
           wish->size == sizeof(pthread_rwlock_t);
}

/*
 * Checks for variants before the object: what is found in one build says nothing about the build that the loader will
 * choose.
 */
static struct resolution *resolve_in_modules(const struct scene *scene, const struct rule *rule, unsigned index)
{
    const char *path = scene->paths[index];
    uint64_t offset = 0;
    char *why;

    if (!path)
        return not_loaded(scene, rule);
    if (has_variants(scene, path))
        return resolution(FINDING_LATER, g_strdup_printf("when one of the builds of %s, one for each kind of "
                                                         "processor, is loaded",
                                                         path));
    why = find_in(rule, path, &scene->wishes[index], &offset);
    if (why)
        return resolution(rule->required == REQUIRED_NO ? FINDING_DOUBTFUL : FINDING_BAD, why);
    if (is_like_rwlock(rule, &scene->wishes[index]))
        return resolution(FINDING_SUSPECT,
                          g_strdup_printf("%s+0x%" PRIx64
                                          " has the size of a read-write lock, as std::shared_mutex: if it "
                                          "is one, it is not distributed, and the rule has no effect",
                                          path, offset));
    return resolution(FINDING_GOOD, g_strdup_printf("%s+0x%" PRIx64, path, offset));
}

/* ---- all files --------------------------------------------------------------------------- */

/*
 * A library's variable that the program uses directly lives in the program (a copy relocation). The library's own bytes
 * are then never locked, so the rule is tried on the program.
 */
static void find_copies(struct scene *scene)
{
    struct elf_wish *copies = g_memdup2(scene->wishes, scene->count * sizeof *copies);

    for (unsigned i = 0; i < scene->count; i++)
        if (!scene->paths[i] || strcmp(scene->paths[i], scene->program->path) == 0)
            copies[i].symbol = NULL;
    elf_find_exported(scene->program->path, copies, scene->count);
    for (unsigned i = 0; i < scene->count; i++)
        if (copies[i].symbol && copies[i].found == ELF_FOUND)
            scene->paths[i] = scene->program->path;
    g_free(copies);
}

/* Finds all symbols of this file at once, so that each file is read once. */
static void find_symbols(struct scene *scene, const char *path)
{
    struct elf_wish *wishes = g_new0(struct elf_wish, scene->count);

    for (unsigned i = 0; i < scene->count; i++)
        if (scene->paths[i] && strcmp(scene->paths[i], path) == 0)
            wishes[i].symbol = scene->wishes[i].symbol;
    elf_find_symbols(path, wishes, scene->count);
    for (unsigned i = 0; i < scene->count; i++)
        if (wishes[i].symbol)
            scene->wishes[i] = wishes[i];
    g_free(wishes);
}

static bool is_first_of_path(const struct scene *scene, unsigned index)
{
    for (unsigned i = 0; i < index; i++)
        if (scene->paths[i] && strcmp(scene->paths[i], scene->paths[index]) == 0)
            return false;
    return true;
}

static void find_all(struct scene *scene, const struct plan *plan)
{
    for (unsigned i = 0; i < scene->count; i++) {
        const struct rule *rule = &plan_at(plan, i)->rule;

        scene->paths[i] = is_of_module(rule) ? module_of(scene, rule) : NULL;
        scene->wishes[i].symbol = rule->kind == RULE_SYMBOL ? rule->symbol : NULL;
    }
    if (scene->program)
        find_copies(scene);
    for (unsigned i = 0; i < scene->count; i++)
        if (scene->paths[i] && is_first_of_path(scene, i))
            find_symbols(scene, scene->paths[i]);
}

/* ---- all --------------------------------------------------------------------------------- */

static struct resolution *resolve_one(const struct scene *scene, const struct rule *rule, unsigned index)
{
    if (scene->program && !rules_is_for(rule, scene->program->path))
        return resolution(FINDING_LATER, g_strdup_printf("for the program %s only", rule->program));
    if (is_of_module(rule))
        return resolve_in_modules(scene, rule, index);
    return resolution(FINDING_GOOD,
                      g_strdup(rule->kind == RULE_FLOCK || rule->kind == RULE_FCNTL ? "when such a file is locked"
                                                                                    : "when it is mapped"));
}

/* Searches for libraries only if a rule needs them: the search takes longer than everything else. */
static bool needs_modules(const struct plan *plan)
{
    for (unsigned i = 0; i < plan_count(plan); i++)
        if (is_of_module(&plan_at(plan, i)->rule))
            return true;
    return false;
}

/* Only reads files, and runs nothing of the command. */
GPtrArray *resolve_all(const struct plan *plan, const struct program *program)
{
    GPtrArray *results = g_ptr_array_new_with_free_func(free_resolution);
    struct scene scene = { .program = program, .count = plan_count(plan) };

    scene.loaded = program && needs_modules(plan) ? loaded_find(program) : g_ptr_array_new();
    scene.paths = g_new0(const char *, scene.count);
    scene.wishes = g_new0(struct elf_wish, scene.count);
    if (needs_modules(plan))
        find_all(&scene, plan);
    for (unsigned i = 0; i < scene.count; i++)
        g_ptr_array_add(results, resolve_one(&scene, &plan_at(plan, i)->rule, i));
    g_free(scene.paths);
    g_free(scene.wishes);
    g_ptr_array_unref(scene.loaded);
    return results;
}
