#!lua flags=allow-oom
-- Ends an attempt, whatever has become of it: gives the lock back and grants it to the first live
-- waiter, or leaves the queue.
-- KEYS  lock state queue waiter
-- ARGV  1 id, 2 how (0 unlock, 1 died, 2 not recoverable), 3 inbox prefix
-- Answer {released, more} {left} {notowner}; more = 1: waiters are left that a poll must serve
local call = redis.call
local v = call('HMGET', KEYS[2], 'hold', 'token', 'health', 'wanted', 'cursor', 'arrival')
local is_mine = v[1] and v[1]:find(ARGV[1] .. ' ', 1, true) == 1
if is_mine and not v[4] and ARGV[2] == '0' then
  call('DEL', KEYS[1])
  call('HDEL', KEYS[2], 'hold')
  return { 'released', 0 }
end
--@include _own
--@include _state
--@include _serve
local k, s = KEYS, parse(v)
check_queue(k)
if not is_mine then
  local was_waiting = call('ZREM', k[3], ARGV[1])
  call('HDEL', k[4], ARGV[1])
  return { was_waiting == 1 and 'left' or 'notowner' }
end
give_up(k, s, tonumber(ARGV[2]))
if s.health == 2 then
  tell_unrecoverable(k, ARGV[3])
  return { 'released', 0 }
end
local _, _, _, more = serve(k, s, ARGV[3], (clock()))
return { 'released', more and 1 or 0 }
