/* SPDX-License-Identifier: BSD-2-Clause */
/* What the server has: owners, queues, and all keys as a text. */
#include <string.h>

#include "scripts.h"

const char *owner(const char *leaf)
{
    return run_script("local hold = redis.call('HGET', KEYS[2], 'hold') or ''\n"
                      "return redis.call('HLEN', KEYS[1]) > 0 and hold:match('^(%S+):%d+ ') or ''\n",
                      2, key("lock", leaf), key("state", leaf), NULL);
}

const char *hold_of_leaf(const char *leaf)
{
    const char *hold = command("HGET %s hold", key("state", leaf));

    return hold[0] == '-' ? "" : hold;
}

const char *ended_hold(const char *leaf)
{
    const char *hold = command("HGET %s hold", key("state", leaf));

    return hold[0] == '-' ? hold : "";
}

long long size_of(const char *kind, const char *leaf)
{
    bool is_hash = strcmp(kind, "waiter") == 0 || strcmp(kind, "sleeper") == 0;

    return command_number("%s %s", is_hash ? "HLEN" : "ZCARD", key(kind, leaf));
}

long long lifetime(const char *kind, const char *leaf)
{
    return command_number("PTTL %s", key(kind, leaf));
}

void set_token(const char *token)
{
    command("HSET %s token %s", key("state", "x"), token);
}

long long sleepers(void)
{
    return size_of("cond", "c");
}

long long queued(void)
{
    return size_of("queue", "x");
}

const char *newest(void)
{
    return command("HGET %s arrival", key("sleeper", "c"));
}

void gather(void)
{
    static const char script[] =
        "local id, words = (redis.call('HGET', KEYS[1], 'wanted') or ''):match('^(%S+) (.*)$')\n"
        "if not id then return 0 end\n"
        "redis.call('ZADD', KEYS[2], words:match('^%d+ %d+ %d (%d+)'), id)\n"
        "redis.call('HSET', KEYS[3], id, words)\n"
        "return redis.call('HSET', KEYS[1], 'wanted', 1)\n";

    assert_string_equal(run_script(script, 3, key("state", "x"), key("queue", "x"), key("waiter", "x"), NULL), "0");
}

const char *dump(void)
{
    static const char script[] = "local out, names = {}, redis.call('KEYS', 'dmutex:*')\n"
                                 "table.sort(names)\n"
                                 "for _, name in ipairs(names) do\n"
                                 "  local kind = redis.call('TYPE', name).ok\n"
                                 "  local lines = {}\n"
                                 "  if kind == 'hash' then\n"
                                 "    local all = redis.call('HGETALL', name)\n"
                                 "    for i = 1, #all, 2 do\n"
                                 "      local value = all[i + 1]:gsub('^(%d+ %d+ %d) %d+ ', '%1 # ')\n"
                                 "      lines[#lines + 1] = '  ' .. all[i] .. ' = ' .. value\n"
                                 "    end\n"
                                 "    table.sort(lines)\n"
                                 "  elseif kind == 'zset' then\n"
                                 "    for _, v in ipairs(redis.call('ZRANGE', name, 0, -1, 'WITHSCORES')) do\n"
                                 "      lines[#lines + 1] = '  ' .. v\n"
                                 "    end\n"
                                 "  else\n"
                                 "    lines[1] = '  ' .. redis.call('GET', name)\n"
                                 "  end\n"
                                 "  out[#out + 1] = kind .. ' ' .. name .. '\\n' .. table.concat(lines, '\\n')\n"
                                 "end\n"
                                 "return table.concat(out, '\\n')\n";

    return run_script(script, 0, NULL);
}
