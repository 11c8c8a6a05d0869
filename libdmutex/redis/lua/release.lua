#!lua flags=allow-oom
-- Ends an attempt, whatever has become of it: gives the lock back and grants it to the first live
-- waiter, or leaves the queue.
-- KEYS  lock state queue waiter
-- ARGV  1 inbox prefix, 2 owner, 3 attempt, 4 how (0 unlock, 1 died, 2 not recoverable)
-- Answer {released, more} {left} {notowner}; more = 1: waiters are left that a poll must serve
--@include _own
local k = KEYS
local s = read(k[2])
if not s then return redis.error_reply('DMSTATE the state of this mutex was not written by libdmutex') end
local is_mine = s.owner == ARGV[2] and s.attempt == ARGV[3]
if is_mine and not s.wanted and ARGV[4] == '0' then
  redis.call('DEL', k[1])
  redis.call('HDEL', k[2], 'owner', 'attempt', 'lease', 'label')
  return { 'released', 0 }
end
--@include _serve
check_queue(k)
if not is_mine then
  local id = ARGV[2] .. ':' .. ARGV[3]
  local was_waiting = redis.call('ZREM', k[3], id)
  redis.call('HDEL', k[4], id)
  return { was_waiting == 1 and 'left' or 'notowner' }
end
give_up(k, s, tonumber(ARGV[4]))
if s.health == 2 then
  tell_unrecoverable(k, ARGV[1])
  return { 'released', 0 }
end
local _, _, _, more = serve(k, s, ARGV[1], clock())
return { 'released', more and 1 or 0 }
