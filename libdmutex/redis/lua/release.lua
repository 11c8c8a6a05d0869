#!lua flags=allow-oom
-- Ends an attempt in any state: gives the lock back and grants the lock to the first live waiter, or leaves the queue,
-- or the condition.
-- KEYS  lock state queue waiter, and for a waiter of a condition: cond sleeper
-- ARGV  1 id, 2 how (0 unlock, 1 died, 2 not recoverable), 3 inbox prefix, 4 since when the server is there, us,
--       5 the server's run id
-- Answer {released, more} {left} {notowner}; more = 1: waiters are left that a poll must serve
local call = redis.call
local hold, wanted = unpack(call('HMGET', KEYS[2], 'hold', 'wanted'))
local is_mine = hold and hold:find(ARGV[1] .. ' ', 1, true) == 1

--@include _epoch
--@include _tell
--@include _handover
if is_mine and ARGV[2] == '0' then
  local head = wanted and call('ZRANGE', KEYS[3], 0, 0)[1]
  if not head then -- nobody waits
    call('DEL', KEYS[1])
    call('HDEL', KEYS[2], 'hold', 'wanted', 'cursor')
    return { 'released', 0 }
  end
  if hand_over(KEYS, head, ARGV[3], ARGV[4], ARGV[5], '') then return { 'released', 0 } end
end
--@include _own
--@include _state
--@include _serve
local k, s = KEYS, read(KEYS[2])
local c = k[5] and { [3] = k[5], [4] = k[6] }
check_queue(k)
if c then check_queue(c) end
if not is_mine then
  local was_waiting = leave(k, ARGV[1]) + (c and forget(c, ARGV[1]) or 0)
  return { was_waiting > 0 and 'left' or 'notowner' }
end
if ARGV[2] == '1' then owe_signal(k, s.label) end
give_up(k, s, tonumber(ARGV[2]))
if s.health == 2 then
  tell_unrecoverable(k, ARGV[3])
  return { 'released', 0 }
end
local _, _, _, more = serve(k, s, ARGV[3], (clock()), ARGV[4], ARGV[5])
return { 'released', more == true and 1 or 0 }
