#!lua flags=no-writes
-- What the server knows of a mutex.
-- KEYS  lock state queue
-- Answer {owner or '', hold count, remaining ms, token, label, waiters, health}
local call = redis.call
local owner = call('HGETALL', KEYS[1])
local v = call('HMGET', KEYS[2], 'token', 'hold', 'health')
local is_dead = #owner == 0 and v[2]
return { owner[1] or '', owner[2] or 0, call('PTTL', KEYS[1]), tonumber(v[1] or 0),
  v[2] and v[2]:match('^%S+ %d+ (.*)$'):gsub('^@%S+ ', '') or '', call('ZCARD', KEYS[3]), is_dead and 1 or tonumber(v[3] or 0) }
