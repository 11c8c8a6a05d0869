#!lua
-- Enqueues an attempt on a condition and gives back the caller's hold of the mutex, in one step.
-- KEYS  lock state queue waiter cond sleeper
-- ARGV  id of the hold, how the hold ends (0 unlock, 2 not recoverable), hold of the attempt, lease ms, highest token
--       seen, request, robust 0|1, the mutex, in the clients' words, inbox prefix, origin (_origin.lua)
-- Answer {waiting, more, now} {notowner} {bound} {full} {notrecoverable}; to a repeated call also the state
--        of the attempt: {owned, token, dead, now} {queued, position, remaining, 0, now}
local call = redis.call
--@include _numbers
--@include _base
--@include _queue
--@include _tell
--@include _serve
local ended, how, hold, lease, seen, request, robust, mutex, inbox, origin = unpack(ARGV)
local k, c, at = mutex_at(1), condition_at(1 + mutex_keys), circumstances(inbox, origin)
local me, s = caller(hold, seen, request, robust, at), read(k)
local waiting, bound, newest = check_queue(c), unpack(call('HMGET', c.waiter, 'mutex', 'arrival'))
gather(k, s, at)

-- Repeated: checks the attempt before the hold, because the attempt has given the hold back.
if call('ZSCORE', c.queue, me.id) then
  hear(c, me)
  return { 'waiting', 0, at.now }
end
local is_mine, was_mine = still_owns(k, s, me, at)
if is_mine then
  return { 'owned', s.last, robust == '1' and s.health or 0, at.now }
end
if was_mine then enqueue(k, s, me, at) end
local rank = call('ZRANK', k.queue, me.id)
if rank then
  hear(k, me)
  revive(k, s, me.id)
  return { 'queued', rank + 1, left(k, s, lease, at), 0, at.now }
end

if s.id ~= ended then return { 'notowner' } end
if bound and bound ~= mutex and waiting > 0 then
  for _, id in ipairs(call('ZRANGE', c.queue, 0, look_limit - 1)) do
    local w = entry(c, id)
    if not w or is_gone(w, at) then forget(c, id) end
  end
  waiting = call('ZCARD', c.queue)
  if waiting > 0 then return { 'bound' } end
end
if waiting >= queue_limit then return { 'full' } end
if how ~= '0' then
  end_hold(k, s, tonumber(how), held_ms(s, at))
  tell_unrecoverable(k, inbox)
  return { 'notrecoverable' }
end
local arrival = text(math.max(tonumber(newest or 0) + 1, at.now))
insert(c, me, arrival, waiting == 0)
call('HSET', c.waiter, 'mutex', mutex, 'arrival', arrival)
if waiting == 0 then call('HDEL', k.state, 'debt ' .. c.queue) end
local winner, _, _, more = serve(k, s, at)
if not winner then end_hold(k, s, 0, held_ms(s, at)) end
return { 'waiting', more == true and 1 or 0, at.now }
