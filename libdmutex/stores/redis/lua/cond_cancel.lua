#!lua flags=allow-oom
-- A waiter of a condition no longer waits for a signal: it wants the mutex.
-- KEYS  lock state queue waiter cond sleeper
-- ARGV  hold of the attempt, lease ms, highest token seen, request, robust 0|1, inbox prefix, origin
--       (_origin.lua)
-- Answer {owned, token, dead, now, n} {queued, position, remaining, 0, now, more, n} {unknown, 0, n}
--        {notrecoverable, n}; n = 1: a signal came first
local call = redis.call
--@include _numbers
--@include _base
--@include _queue
--@include _tell
--@include _serve
--@include _condition
local hold, lease, seen, request, robust, inbox, origin = unpack(ARGV)
local k, c, at = mutex_at(1), condition_at(1 + mutex_keys), circumstances(inbox, origin)
local s, me = read(k), caller(hold, seen, request, robust, at)
check_queue(c)
gather(k, s, at)
local function owned(n, token, dead) return { 'owned', token, dead, at.now, n } end

local is_mine, was_mine = still_owns(k, s, me, at)
if is_mine then
  return owned(s.label:find('@', 1, true) == 1 and 1 or 0, s.last, robust == '1' and s.health or 0)
end
if was_mine then enqueue(k, s, me, at) end
local is_held = call('HLEN', k.lock) > 0
if not is_held then note_death(k, s, at) end
if s.health == 2 then
  forget(c, me.id)
  forget(k, me.id)
  return { 'notrecoverable', 0 }
end
local is_signalled = 0
if call('ZSCORE', c.queue, me.id) then
  move(k, c, s, me, at, false)
elseif call('ZSCORE', k.queue, me.id) then
  local before = entry(k, me.id)
  is_signalled = before and before.signal ~= '' and 1 or 0
  hear(k, me)
  revive(k, s, me.id)
else
  return { 'unknown', 0, 0 }
end
local winner, token, dead, more
if not is_held then
  winner, token, dead, more = serve(k, s, at, me.id)
  if winner and winner.id == me.id then return owned(is_signalled, token, dead) end
  s.lease = winner and tonumber(winner.lease)
end
local position = call('ZRANK', k.queue, me.id) + 1
return { 'queued', position, left(k, s, lease, at), 0, at.now, more == true and 1 or 0, is_signalled }
