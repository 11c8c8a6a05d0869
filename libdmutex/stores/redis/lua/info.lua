#!lua flags=no-writes
-- Shows what the server knows about a mutex.
-- KEYS  lock state queue
-- ARGV  id of a waiter, or '', the waiter's lease ms, origin (_origin.lua)
-- Answer {owner ('' if free, '?' if `state` is lost), hold count, remaining ms, token, label, waiters, health, now,
--        time of the grant, position of the waiter or 0, ms for which the server grants nothing by itself}
local call = redis.call
--@include _numbers
--@include _base
local id, lease, origin = unpack(ARGV)
local k, at = mutex_at(1), circumstances(nil, origin)
local s, is_held = read(k), call('HLEN', k.lock) > 0
local lone = lone_of(s, at)
local rank = id ~= '' and (lone and lone.id == id and 0 or call('ZRANK', k.queue, id))
local mark, label = split(s.label or '')
local health = not is_held and s.hold and mark ~= mark_without_death and 1 or s.health
local owner = is_held and (s.id and owner_of(s.id) or '?') or ''
return { owner, is_held and s.count or 0, call('PTTL', k.lock), s.last, label,
  call('ZCARD', k.queue) + (lone and 1 or 0), health, at.now, s.last + epoch_us, rank and rank + 1 or 0,
  grace(at, lease) }
