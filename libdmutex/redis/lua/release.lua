#!lua flags=allow-oom
-- Ends an attempt, whatever has become of it: gives the lock back and grants it to the first live
-- waiter, or leaves the queue, or the condition.
-- KEYS  lock state queue waiter, and for a waiter of a condition: cond sleeper
-- ARGV  1 id, 2 how (0 unlock, 1 died, 2 not recoverable), 3 inbox prefix, 4 since when the server is there, us
-- Answer {released, more} {left} {notowner}; more = 1: waiters are left that a poll must serve
local call = redis.call
local v = call('HMGET', KEYS[2], 'hold', 'token', 'health', 'wanted', 'cursor', 'arrival')
local is_mine = v[1] and v[1]:find(ARGV[1] .. ' ', 1, true) == 1

-- The two usual cases, written out: a third of the time that the parts below would take.
-- Nobody waits.
if is_mine and not v[4] and ARGV[2] == '0' then
  call('DEL', KEYS[1])
  call('HDEL', KEYS[2], 'hold')
  return { 'released', 0 }
end
-- The head of the queue was heard of just now, and hears: it is the owner.
local head = is_mine and ARGV[2] == '0' and not (v[3] or v[5]) and call('ZRANGE', KEYS[3], 0, 0)[1]
local said = head and call('HGET', KEYS[4], head)
if said then
  local request, lease, heard, seen, label = said:match('^(%d+) (%d+) %d (%d+) (%d+) (.*)$')
  local owner, uuid, attempt = head:match('^(([^:]*):.*):(%d+)$')
  local t = call('TIME')
  local now, token = t[1] * 1000000 + t[2], t[1] .. ('000000'):sub(#t[2] + 1) .. t[2]
  local is_old = ARGV[4] == '0' or now - ARGV[4] >= lease * 1000
  if request and owner and is_old and now - heard < 1000000 and (tonumber(v[2]) or now) < now and tonumber(seen) < now then
    local heard_by = redis.pcall('PUBLISH', ARGV[3] .. uuid,
      'granted ' .. attempt .. ' ' .. request .. ' ' .. token .. ' ' .. lease .. ' 0')
    if type(heard_by) == 'number' and heard_by > 0 then
      call('DEL', KEYS[1])
      call('HSET', KEYS[1], owner, 1)
      call('PEXPIRE', KEYS[1], lease)
      call('HSET', KEYS[2], 'hold', head .. ' ' .. lease .. ' ' .. label, 'token', token)
      call('ZREM', KEYS[3], head)
      call('HDEL', KEYS[4], head)
      return { 'released', 0 }
    end
  end
end
--@include _own
--@include _state
--@include _serve
local k, s = KEYS, parse(v)
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
local _, _, _, more = serve(k, s, ARGV[3], (clock()), ARGV[4])
return { 'released', more == true and 1 or 0 }
