/* SPDX-License-Identifier: BSD-2-Clause */
#include "modules.h"

#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "module/base/gate.h"
#include "module/base/own_lock.h"
#include "module/base/scratch.h"
#include "module/base/settings.h"
#include "objects.h"
#include "shared/elffile.h"
#include "shared/text.h"

/* A module on which the rules have been tried. */
struct module {
    const void *headers; /* its program headers, which identify it */
    uintptr_t base;      /* 0 for a program at a fixed address */
    bool is_there, is_known;
};

#define MODULES_MOST 4096

static struct module modules[MODULES_MOST];
static size_t module_count;
static pthread_mutex_t updating = PTHREAD_MUTEX_INITIALIZER; /* by libc's own functions */

/* An update may allocate, and an allocator may lock. */
static __thread bool is_updating __attribute__((tls_model("initial-exec")));

/* ---- one rule and one module ------------------------------------------------------------- */

/* Reports why a rule fails. Ends the program if the rule is required: it must not run without the mutex. */
static void complain(const struct rule *rule, const char *path, const char *what)
{
    char typed[512];
    struct text text = text_in(typed, sizeof typed);

    rules_write(rule, &text);
    text_say(typed, " (", rule->name, "): ", what, " in ", path,
             rule->required == REQUIRED_NO ? "; it is left local" : "", NULL);
    if (rule->required != REQUIRED_NO)
        _exit(78);
}

/* How many rules are tried on a module together, because each pass over the file reads all symbols. */
#define BATCH 128
static struct batch {
    const struct rule *rules[BATCH];
    struct elf_wish wishes[BATCH], copies[BATCH];
    int count;
} batch; /* `updating` is held */

/*
 * A library's variable that the program uses directly lives in the program: the loader has copied it there, and the
 * library uses the copy, too.
 */
static void find_copies(const char *path)
{
    for (int i = 0; i < batch.count; i++)
        batch.copies[i].symbol = batch.wishes[i].symbol;
    elf_find_exported(path, batch.copies, (size_t)batch.count);
    for (int i = 0; i < batch.count; i++)
        if (batch.copies[i].found != ELF_FOUND)
            batch.copies[i].symbol = NULL;
    elf_find_exported(settings_get()->program, batch.copies, (size_t)batch.count);
}

static void add(const struct rule *rule, const char *path, const struct module *module, uint64_t offset)
{
    objects_add((void *)(module->base + offset + rule->offset), rule, path, module->headers);
}

static void add_by_symbol(int index, const char *path, const struct module *module)
{
    static const char *const why[] = {
        [ELF_NO_FILE] = "no ELF file that can be read",
        [ELF_NO_SYMBOL] = "no such symbol (stripped? dmutex-run --list has off: rules)",
        [ELF_NOT_UNIQUE] = "several variables of that name (dmutex-run --list has off: rules)",
        [ELF_NO_OBJECT] = "a symbol that is not a variable",
    };
    const struct elf_wish *wish = &batch.wishes[index], *copy = &batch.copies[index];

    if (module != &modules[0] && copy->found == ELF_FOUND)
        add(batch.rules[index], path, &modules[0], copy->offset);
    else if (wish->found == ELF_FOUND)
        add(batch.rules[index], path, module, wish->offset);
    else
        complain(batch.rules[index], path, why[wish->found]);
}

/* Tries the rules in order: the first match counts. */
static void try_batch(const char *path, const struct module *module)
{
    char id[ELF_BUILD_ID_ROOM];

    if (module != &modules[0])
        find_copies(path);
    elf_find_symbols(path, batch.wishes, (size_t)batch.count);
    elf_build_id(path, id);
    for (int i = 0; i < batch.count; i++) {
        const struct rule *rule = batch.rules[i];

        if (rule->kind == RULE_SYMBOL)
            add_by_symbol(i, path, module);
        else if (strncmp(id, rule->build_id, strlen(rule->build_id)) == 0)
            add(rule, path, module, 0);
        else
            complain(rule, path, "another build-id than the rule's");
    }
    batch.count = 0;
}

/* ---- one module -------------------------------------------------------------------------- */

static bool is_of_module(const struct rule *rule)
{
    return rule->kind == RULE_SYMBOL || rule->kind == RULE_OFFSET;
}

/*
 * True if the rule means this file: by its name, by the name under which it was loaded, or by what a link resolves to.
 */
static bool is_meant(int index, const char *loaded, const char *path)
{
    const struct settings *settings = settings_get();
    const struct rule *rule = &settings->rules[index];
    const char *resolved = settings->resolved[index];

    return is_of_module(rule) && (rules_names_file(rule->module, path) || rules_names_file(rule->module, loaded) ||
                                  (resolved && strcmp(resolved, path) == 0));
}

/* `updating` is held, which guards the path. */
static void try_rules(const char *loaded, const struct module *module)
{
    const struct settings *settings = settings_get();
    static char path[PATH_MAX];

    if (!realpath(module == &modules[0] ? settings->program : loaded, path))
        return; /* the kernel's own */
    for (int i = 0; i < settings->count; i++) {
        if (!is_meant(i, loaded, path))
            continue;
        batch.rules[batch.count] = &settings->rules[i];
        batch.wishes[batch.count++].symbol = settings->rules[i].symbol;
        if (batch.count == BATCH)
            try_batch(path, module);
    }
    if (batch.count > 0)
        try_batch(path, module);
}

/* ---- all --------------------------------------------------------------------------------- */

static struct module *record_of(const struct dl_phdr_info *info)
{
    for (size_t i = 0; i < module_count; i++)
        if (modules[i].headers == info->dlpi_phdr)
            return &modules[i];
    if (module_count == MODULES_MOST)
        return NULL;
    modules[module_count] = (struct module){ .headers = info->dlpi_phdr, .base = info->dlpi_addr };
    return &modules[module_count++];
}

/* The name by which the program was executed; it may be a link, or a script's. */
static const char *called_by(void)
{
    const char *name = (const char *)getauxval(AT_EXECFN);

    return name ? name : "";
}

/* The first module that is reported is the program. */
static int visit(struct dl_phdr_info *info, size_t size, void *user)
{
    struct module *module = record_of(info);

    (void)size;
    (void)user;
    if (!module)
        return 0;
    module->is_there = true;
    if (!module->is_known) {
        module->is_known = true;
        try_rules(module == &modules[0] ? called_by() : info->dlpi_name, module);
    }
    return 0;
}

/* `updating` is held. */
static void update(void)
{
    for (size_t i = 0; i < module_count; i++)
        modules[i].is_there = false;
    dl_iterate_phdr(visit, NULL);
    for (size_t i = 1; i < module_count; i++)
        if (modules[i].is_known && !modules[i].is_there) {
            modules[i].is_known = false;
            objects_forget_module(modules[i].headers);
        }
}

void modules_update(void)
{
    int error = errno, cancel_state;

    if (!settings_get()->has_objects || is_updating)
        return;
    is_updating = true;
    gate_enter();
    cancel_state = own_lock(&updating);
    update();
    own_unlock(&updating, cancel_state);
    gate_leave();
    is_updating = false;
    errno = error;
}

void modules_in_child(void)
{
    const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;

    if (!is_updating)
        updating = unlocked;
}

/* ---- what must be there ------------------------------------------------------------------ */

static int visit_to_match(struct dl_phdr_info *info, size_t size, void *user)
{
    const int *index = user;
    bool is_program = info->dlpi_phdr == modules[0].headers, is_match;
    char *path = scratch_take(PATH_MAX);

    (void)size;
    is_match = path && realpath(is_program ? settings_get()->program : info->dlpi_name, path) &&
               is_meant(*index, is_program ? called_by() : info->dlpi_name, path);
    scratch_give(path, PATH_MAX);
    return is_match;
}

void modules_require(void)
{
    const struct settings *settings = settings_get();

    for (int i = 0; i < settings->count; i++) {
        const struct rule *rule = &settings->rules[i];

        if (is_of_module(rule) && rule->required == REQUIRED_YES && rule->program &&
            !dl_iterate_phdr(visit_to_match, &i))
            complain(rule, settings->program, "required, and its module is not loaded");
    }
}

/* ---- where an address is ----------------------------------------------------------------- */

struct search {
    uintptr_t address;
    char *path;
    uint64_t *offset;
};

static int visit_to_find(struct dl_phdr_info *info, size_t size, void *user)
{
    const struct search *search = user;

    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

        if (segment->p_type != PT_LOAD || search->address - info->dlpi_addr - segment->p_vaddr >= segment->p_memsz)
            continue;
        if (!realpath(info->dlpi_name[0] ? info->dlpi_name : settings_get()->program, search->path))
            return 0;
        *search->offset = search->address - info->dlpi_addr;
        return 1;
    }
    return 0;
}

bool modules_find(const void *address, char ret_path[MAPS_PATH_ROOM], uint64_t *ret_offset)
{
    struct search search = { .address = (uintptr_t)address, .path = ret_path, .offset = ret_offset };

    return dl_iterate_phdr(visit_to_find, &search) == 1;
}
