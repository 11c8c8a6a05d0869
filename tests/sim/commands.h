/* SPDX-License-Identifier: BSD-2-Clause */
/* The server's commands, as far as scripts use commands, on a simulated store. */
#ifndef SIM_COMMANDS_H
#define SIM_COMMANDS_H

#include <lua.h>

#include "scripting.h"

#define COMMAND_ARGUMENTS_MAX 64

/*
 * Runs a command and pushes the reply the way scripts see replies, or the text of an error.  False
 * for an error.
 */
bool command_run(lua_State *lua, const struct site *site, int count, const struct text *arguments);

#endif
