#!lua flags=allow-oom
-- Tries every command of the other scripts, so that a missing permission is found when we connect, not between two
-- writes.
--@unguarded
-- KEYS  a hash and a zset of the probe
-- ARGV  1 a channel below the inbox prefix
-- Answer now; an error that names the command
local h, z = KEYS[1], KEYS[2]
local tries = { -- first what takes the keys away again, should a later command fail
  { 'DEL', h, z }, { 'PEXPIRE', h, 1000 },
  { 'HSET', h, 'a', 1 }, { 'HMGET', h, 'a' }, { 'HGET', h, 'a' }, { 'HLEN', h },
  { 'ZADD', z, 1, 'a' }, { 'ZRANGE', z, 0, 1 }, { 'ZRANK', z, 'a' }, { 'ZSCORE', z, 'a' }, { 'ZCARD', z },
  { 'EXISTS', h }, { 'PTTL', h }, { 'PUBLISH', ARGV[1], '' },
  { 'PUBSUB', 'NUMSUB', ARGV[1] },
  { 'HDEL', h, 'a' }, { 'ZREM', z, 'a' }, { 'DEL', h, z }, { 'TIME' },
}
local result
for _, command in ipairs(tries) do
  result = redis.pcall(unpack(command))
  if type(result) == 'table' and result.err then
    redis.pcall('DEL', h, z)
    local name = command[1] == 'PUBSUB' and 'PUBSUB NUMSUB' or command[1]
    return redis.error_reply('NOPERM ' .. name .. ' failed: ' .. result.err)
  end
end
return result[1] * 1000000 + result[2]
