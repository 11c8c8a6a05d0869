#!lua flags=no-writes
-- What the server knows of a mutex.
-- KEYS  lock state queue
-- Answer {owner or '', hold count, remaining ms, token, label, waiters, health}
local owner = redis.call('HGETALL', KEYS[1])
local v = redis.call('HMGET', KEYS[2], 'token', 'label', 'health', 'owner')
local is_dead = #owner == 0 and v[4]
return { owner[1] or '', owner[2] or 0, redis.call('PTTL', KEYS[1]), tonumber(v[1] or 0), v[2] or '',
  redis.call('ZCARD', KEYS[3]), is_dead and 1 or tonumber(v[3] or 0) }
