/* SPDX-License-Identifier: BSD-2-Clause */
#include "scripting.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "stores/redis/wire/scripts.h"

struct scripting {
    lua_State *lua;
    int compiled[SCRIPTS_MAX][2]; /* for one server, for a node of a Cluster */
    struct site site;             /* of the current run */
};

static const struct {
    const char *name, *shas[2], *texts[2];
} scripts[] = {
#define S(name)                                            \
    {                                                      \
#name, { dm_sha_##name, dm_sha_##name##_cluster }, \
        {                                                  \
            dm_lua_##name, dm_lua_##name##_cluster         \
        }                                                  \
    }
    S(acquire), S(born),  S(cancel), S(cond_cancel), S(cond_drop), S(cond_signal), S(cond_wait), S(consistent),
    S(drop),    S(force), S(info),   S(poll),        S(probe),     S(release),     S(renew),
#undef S
};

#define SCRIPTS ((int)(sizeof scripts / sizeof scripts[0]))

/* ---- bytes ------------------------------------------------------------------------------- */

void bytes_add(struct bytes *bytes, const char *data, size_t length)
{
    if (bytes->length + length + 1 > bytes->room) {
        bytes->room = (bytes->length + length + 1) * 2;
        bytes->data = realloc(bytes->data, bytes->room);
        if (!bytes->data)
            abort();
    }
    memcpy(bytes->data + bytes->length, data, length);
    bytes->length += length;
    bytes->data[bytes->length] = '\0';
}

void bytes_print(struct bytes *bytes, const char *format, ...)
{
    char text[512];
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof text)
        abort();
    bytes_add(bytes, text, (size_t)length);
}

/* ---- the scripts ------------------------------------------------------------------------- */

int scripting_by_sha(struct text sha)
{
    for (int i = 0; i < SCRIPTS; i++) {
        if (text_is(sha, scripts[i].shas[0]) || text_is(sha, scripts[i].shas[1]))
            return i;
    }
    return -1;
}

int scripting_by_text(struct text text)
{
    for (int i = 0; i < SCRIPTS; i++) {
        if (text_is(text, scripts[i].texts[0]) || text_is(text, scripts[i].texts[1]))
            return i;
    }
    return -1;
}

const char *scripting_name(int script)
{
    return scripts[script].name;
}

bool scripting_needs_memory(int script)
{
    const char *text = scripts[script].texts[0];

    return strncmp(text, "#!lua\n", 6) == 0;
}

/* ---- redis.call and the like ------------------------------------------------------------- */

static struct scripting *of(lua_State *lua)
{
    return lua_touserdata(lua, lua_upvalueindex(1));
}

/* Reads the words of a command; numbers become text as on the server. */
static int read_arguments(lua_State *lua, struct text *arguments, char numbers[][32])
{
    int count = lua_gettop(lua);

    if (count == 0 || count > COMMAND_ARGUMENTS_MAX)
        luaL_error(lua, "a command of %d words", count);
    for (int i = 0; i < count; i++) {
        if (lua_type(lua, i + 1) == LUA_TNUMBER) {
            arguments[i].length = (size_t)snprintf(numbers[i], 32, "%.17g", lua_tonumber(lua, i + 1));
            arguments[i].bytes = numbers[i];
        } else if (lua_type(lua, i + 1) == LUA_TSTRING) {
            arguments[i].bytes = lua_tolstring(lua, i + 1, &arguments[i].length);
        } else {
            luaL_error(lua, "Lua redis lib command arguments must be strings or integers");
        }
    }
    return count;
}

/* Turns the text on top of the stack into a table with the text in the field `err`. */
static void wrap_error(lua_State *lua)
{
    lua_createtable(lua, 0, 1);
    lua_insert(lua, -2);
    lua_setfield(lua, -2, "err");
}

static bool run_command(lua_State *lua)
{
    struct text arguments[COMMAND_ARGUMENTS_MAX];
    char numbers[COMMAND_ARGUMENTS_MAX][32];
    int count = read_arguments(lua, arguments, numbers);

    if (command_run(lua, &of(lua)->site, count, arguments))
        return true;
    wrap_error(lua);
    return false;
}

static int redis_call(lua_State *lua)
{
    return run_command(lua) ? 1 : lua_error(lua);
}

static int redis_pcall(lua_State *lua)
{
    run_command(lua);
    return 1;
}

static int redis_error_reply(lua_State *lua)
{
    luaL_checkstring(lua, 1);
    lua_settop(lua, 1);
    wrap_error(lua);
    return 1;
}

/* ---- the interpreter --------------------------------------------------------------------- */

static int no_such_global(lua_State *lua)
{
    return luaL_error(lua, "Script attempted to access nonexistent global variable '%s'", lua_tostring(lua, 2));
}

static int no_new_global(lua_State *lua)
{
    return luaL_error(lua, "Attempt to modify a readonly table, script: %s", lua_tostring(lua, 2));
}

static void add_function(struct scripting *scripting, const char *name, lua_CFunction function)
{
    lua_pushlightuserdata(scripting->lua, scripting);
    lua_pushcclosure(scripting->lua, function, 1);
    lua_setfield(scripting->lua, -2, name);
}

static void open_libraries(struct scripting *scripting)
{
    static const lua_CFunction openers[] = { luaopen_base, luaopen_table, luaopen_string, luaopen_math };
    lua_State *lua = scripting->lua;

    for (size_t i = 0; i < sizeof openers / sizeof openers[0]; i++) {
        lua_pushcfunction(lua, openers[i]);
        lua_call(lua, 0, 0);
    }
    lua_newtable(lua);
    add_function(scripting, "call", redis_call);
    add_function(scripting, "pcall", redis_pcall);
    add_function(scripting, "error_reply", redis_error_reply);
    lua_setglobal(lua, "redis");
    lua_newtable(lua);
    lua_pushcfunction(lua, no_such_global);
    lua_setfield(lua, -2, "__index");
    lua_pushcfunction(lua, no_new_global);
    lua_setfield(lua, -2, "__newindex");
    lua_setmetatable(lua, LUA_GLOBALSINDEX);
}

/* Puts `new` for each `old` of the text, which has one and is freed. */
static char *replace_all(char *text, const char *old, const char *new)
{
    struct bytes changed = { 0 };
    const char *from = text;

    for (const char *at = strstr(from, old); at; at = strstr(from, old)) {
        bytes_add(&changed, from, (size_t)(at - from));
        bytes_add(&changed, new, strlen(new));
        from = at + strlen(old);
    }
    bytes_add(&changed, from, strlen(from) + 1);
    free(text);
    return changed.data;
}

static bool concerns(const struct mutation *mutation, int script)
{
    return strcmp(mutation->script, scripts[script].name) == 0;
}

/* A mutation is for one of the two texts of its script, or for both. */
static void check_mutations(const struct mutation *mutations)
{
    for (const struct mutation *mutation = mutations; mutation && mutation->script; mutation++) {
        bool is_found = false;

        for (int i = 0; i < SCRIPTS; i++)
            is_found = is_found || (concerns(mutation, i) && (strstr(scripts[i].texts[0], mutation->old) ||
                                                              strstr(scripts[i].texts[1], mutation->old)));
        if (is_found)
            continue;
        fprintf(stderr, "%s has no line \"%s\" to be mutated\n", mutation->script, mutation->old);
        abort();
    }
}

/* Returns a text of the script with the mutations; to be freed. */
static char *mutate(int script, const char *text, const struct mutation *mutations)
{
    char *copy = strdup(text);

    for (const struct mutation *mutation = mutations; mutation && mutation->script; mutation++) {
        if (concerns(mutation, script) && strstr(copy, mutation->old))
            copy = replace_all(copy, mutation->old, mutation->new);
    }
    return copy;
}

/* Leaves the compiled function on the stack, or the error. */
static bool compile(lua_State *lua, const char *text)
{
    const char *body = strncmp(text, "#!", 2) == 0 ? strchr(text, '\n') : text;

    return luaL_loadbuffer(lua, body, strlen(body), "@user_script") == 0;
}

static int compile_or_abort(struct scripting *scripting, int script, const char *text, const struct mutation *mutations)
{
    char *mutated = mutate(script, text, mutations);

    if (!compile(scripting->lua, mutated)) {
        fprintf(stderr, "%s: %s\n", scripts[script].name, lua_tostring(scripting->lua, -1));
        abort();
    }
    free(mutated);
    return luaL_ref(scripting->lua, LUA_REGISTRYINDEX);
}

struct scripting *scripting_new(const struct mutation *mutations)
{
    struct scripting *scripting = calloc(1, sizeof *scripting);

    if (!scripting)
        abort();
    scripting->lua = luaL_newstate();
    open_libraries(scripting);
    check_mutations(mutations);
    for (int i = 0; i < SCRIPTS; i++) {
        for (int j = 0; j < 2; j++)
            scripting->compiled[i][j] = compile_or_abort(scripting, i, scripts[i].texts[j], mutations);
    }
    return scripting;
}

void scripting_free(struct scripting *scripting)
{
    lua_close(scripting->lua);
    free(scripting);
}

/* ---- replies ----------------------------------------------------------------------------- */

static void write_error(struct bytes *reply, const char *text)
{
    bool has_word = text[0] >= 'A' && text[0] <= 'Z' && strcspn(text, " ") < strlen(text);
    size_t line = strcspn(text, "\r\n");

    bytes_print(reply, "-%s%.*s\r\n", has_word ? "" : "ERR ", (int)(line > 400 ? 400 : line), text);
}

static void write_value(lua_State *lua, struct bytes *reply);

static void write_table(lua_State *lua, struct bytes *reply)
{
    int count = 0;

    lua_getfield(lua, -1, "err");
    if (lua_type(lua, -1) == LUA_TSTRING) {
        write_error(reply, lua_tostring(lua, -1));
        lua_pop(lua, 1);
        return;
    }
    lua_pop(lua, 1);
    for (lua_rawgeti(lua, -1, 1); !lua_isnil(lua, -1); lua_rawgeti(lua, -1, ++count + 1))
        lua_pop(lua, 1);
    lua_pop(lua, 1);
    bytes_print(reply, "*%d\r\n", count);
    for (int i = 1; i <= count; i++) {
        lua_rawgeti(lua, -1, i);
        write_value(lua, reply);
        lua_pop(lua, 1);
    }
}

static void write_value(lua_State *lua, struct bytes *reply)
{
    const char *text;
    size_t length;

    switch (lua_type(lua, -1)) {
    case LUA_TNUMBER:
        bytes_print(reply, ":%lld\r\n", (long long)lua_tonumber(lua, -1));
        break;
    case LUA_TSTRING:
        text = lua_tolstring(lua, -1, &length);
        bytes_print(reply, "$%zu\r\n", length);
        bytes_add(reply, text, length);
        bytes_add(reply, "\r\n", 2);
        break;
    case LUA_TTABLE:
        write_table(lua, reply);
        break;
    case LUA_TBOOLEAN:
        bytes_print(reply, "%s", lua_toboolean(lua, -1) ? ":1\r\n" : "$-1\r\n");
        break;
    default:
        bytes_print(reply, "$-1\r\n");
    }
}

/* ---- runs -------------------------------------------------------------------------------- */

static void set_list(lua_State *lua, const char *name, const struct text *texts, int count)
{
    lua_pushstring(lua, name);
    lua_createtable(lua, count, 0);
    for (int i = 0; i < count; i++) {
        lua_pushlstring(lua, texts[i].bytes, texts[i].length);
        lua_rawseti(lua, -2, i + 1);
    }
    lua_rawset(lua, LUA_GLOBALSINDEX);
}

/* Runs the function on the stack. */
static void run(struct scripting *scripting, const struct site *site, const struct text *keys, int key_count,
                const struct text *arguments, int argument_count, struct bytes *reply)
{
    lua_State *lua = scripting->lua;

    scripting->site = *site;
    set_list(lua, "KEYS", keys, key_count);
    set_list(lua, "ARGV", arguments, argument_count);
    if (lua_pcall(lua, 0, 1, 0) != 0 && lua_type(lua, -1) != LUA_TTABLE)
        write_error(reply, lua_tostring(lua, -1));
    else
        write_value(lua, reply);
    lua_settop(lua, 0);
}

void scripting_run(struct scripting *scripting, int script, const struct site *site, const struct text *keys,
                   int key_count, const struct text *arguments, int argument_count, struct bytes *reply)
{
    lua_rawgeti(scripting->lua, LUA_REGISTRYINDEX, scripting->compiled[script][site->is_node]);
    run(scripting, site, keys, key_count, arguments, argument_count, reply);
}

void scripting_eval(struct scripting *scripting, const char *text, const struct site *site, const struct text *keys,
                    int key_count, const struct text *arguments, int argument_count, struct bytes *reply)
{
    if (!compile(scripting->lua, text)) {
        write_error(reply, lua_tostring(scripting->lua, -1));
        lua_settop(scripting->lua, 0);
        return;
    }
    run(scripting, site, keys, key_count, arguments, argument_count, reply);
}
