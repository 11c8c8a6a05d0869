/* SPDX-License-Identifier: BSD-2-Clause */
#include "resolve.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "../elffile.h"
#include "binary.h"
#include "loaded.h"

/* What the rules are tried on. */
struct scene {
    const struct program *program; /* NULL: none was given */
    GPtrArray *loaded;             /* of struct loaded; empty without a program */
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

/* NULL: found.  Otherwise why not, to be freed. */
static char *find_symbol(const struct rule *rule, const char *path, uint64_t *ret_offset)
{
    switch (elf_find_symbol(path, rule->symbol, ret_offset)) {
    case ELF_FOUND:
        *ret_offset += rule->offset;
        return NULL;
    case ELF_NO_FILE:
        return g_strdup_printf("%s cannot be read, or is no ELF file of this machine", path);
    case ELF_NO_OBJECT:
        return g_strdup_printf("%s in %s is no variable that all threads share and may write", rule->symbol, path);
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

/* A rule may give the beginning of a build-id. */
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

static char *find_in(const struct rule *rule, const char *path, uint64_t *ret_offset)
{
    size_t size = rule->is_condition ? sizeof(pthread_cond_t) : sizeof(pthread_mutex_t);
    char *why = rule->kind == RULE_SYMBOL ? find_symbol(rule, path, ret_offset) : find_offset(rule, path, ret_offset);

    if (!why && !binary_is_writable(path, *ret_offset, size))
        return g_strdup_printf("at 0x%" PRIx64 " of %s is no %s: there is no memory for it that the program may write",
                               *ret_offset, path, rule->is_condition ? "condition variable" : "mutex");
    return why;
}

/* ---- in which file ----------------------------------------------------------------------- */

/* The file that the rule means, as the module looks for it: loaded, or there by its absolute path. */
static const char *module_of(const struct scene *scene, const struct rule *rule)
{
    for (guint i = 0; i < scene->loaded->len; i++) {
        const struct loaded *loaded = scene->loaded->pdata[i];

        if (rules_names_file(rule->module, loaded->path) || rules_names_file(rule->module, loaded->name))
            return loaded->path;
    }
    return rule->module[0] == '/' && access(rule->module, F_OK) == 0 ? rule->module : NULL;
}

static struct resolution *not_loaded(const struct scene *scene, const struct rule *rule)
{
    if (!scene->program)
        return resolution(FINDING_LATER, g_strdup_printf("looked for in %s when a command is given", rule->module));
    if (rule->required == REQUIRED_YES)
        return resolution(FINDING_BAD,
                          g_strdup_printf("%s does not load %s: correct the name, or leave Required=yes out if it does so "
                                          "later",
                                          scene->program->path, rule->module));
    return resolution(FINDING_LATER, g_strdup_printf("when %s is loaded", rule->module));
}

/* A variable of a library that the program uses directly lives in the program (a copy relocation). */
static bool is_copied(const struct scene *scene, const struct rule *rule, const char *path)
{
    uint64_t offset;

    return scene->program && rule->kind == RULE_SYMBOL && strcmp(path, scene->program->path) != 0 &&
           elf_find_copy(scene->program->path, rule->symbol, &offset);
}

static struct resolution *resolve_in_modules(const struct scene *scene, const struct rule *rule)
{
    const char *path = module_of(scene, rule);
    uint64_t offset;
    char *why;

    if (!path)
        return not_loaded(scene, rule);
    if (is_copied(scene, rule, path))
        path = scene->program->path;
    why = find_in(rule, path, &offset);
    if (why)
        return resolution(rule->required == REQUIRED_NO ? FINDING_DOUBTFUL : FINDING_BAD, why);
    return resolution(FINDING_GOOD, g_strdup_printf("%s+0x%" PRIx64, path, offset));
}

/* ---- all --------------------------------------------------------------------------------- */

static struct resolution *resolve_one(const struct scene *scene, const struct rule *rule)
{
    if (scene->program && !rules_is_for(rule, scene->program->path))
        return resolution(FINDING_LATER, g_strdup_printf("for the program %s only", rule->program));
    if (is_of_module(rule))
        return resolve_in_modules(scene, rule);
    return resolution(FINDING_GOOD, g_strdup(rule->kind == RULE_FLOCK || rule->kind == RULE_FCNTL ?
                                                 "when such a file is locked" :
                                                 "when it is mapped"));
}

/* The loader is asked only if a rule needs it: that takes longer than all the rest. */
static bool needs_modules(const struct plan *plan)
{
    for (unsigned i = 0; i < plan_count(plan); i++)
        if (is_of_module(&plan_at(plan, i)->rule))
            return true;
    return false;
}

GPtrArray *resolve_all(const struct plan *plan, const struct program *program)
{
    GPtrArray *results = g_ptr_array_new_with_free_func(free_resolution);
    struct scene scene = { .program = program };

    scene.loaded = program && needs_modules(plan) ? loaded_find(program) : g_ptr_array_new();
    for (unsigned i = 0; i < plan_count(plan); i++)
        g_ptr_array_add(results, resolve_one(&scene, &plan_at(plan, i)->rule));
    g_ptr_array_unref(scene.loaded);
    return results;
}
