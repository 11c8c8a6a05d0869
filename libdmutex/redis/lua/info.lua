#!lua flags=no-writes
-- Tells the server's knowledge of a mutex.
-- KEYS  lock state queue
-- ARGV  1 id of a waiter, or '', 2 the waiter's lease ms, 3 since when the server is there, us
-- Answer {owner or '', hold count, remaining ms, token, label, waiters, health, now, moment of the grant,
--        position of the waiter or 0, ms for which the server grants nothing of its own accord}
--@include _epoch
local call = redis.call
local owner = call('HGETALL', KEYS[1])
local v = call('HMGET', KEYS[2], 'token', 'hold', 'health')
local is_dead = #owner == 0 and v[2]
local t = call('TIME')
local now, token = t[1] * 1000000 + t[2], tonumber(v[1] or 0)
local rank = ARGV[1] ~= '' and call('ZRANK', KEYS[3], ARGV[1])
return { owner[1] or '', owner[2] or 0, call('PTTL', KEYS[1]), token,
  v[2] and v[2]:match('^%S+ %d+ (.*)$'):gsub('^@%S+ ', '') or '', call('ZCARD', KEYS[3]), is_dead and 1 or tonumber(v[3] or 0),
  now, token + epoch_us, rank and rank + 1 or 0, math.max(math.ceil((ARGV[3] + ARGV[2] * 1000 - now) / 1000), 0) }
