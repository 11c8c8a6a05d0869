#!lua flags=allow-oom
-- Ends an attempt in any state: gives the lock back and grants it to the first live waiter, or leaves the queue or the
-- condition.
-- KEYS  lock state queue waiter, and for a waiter of a condition: cond sleeper
-- ARGV  id, the text of the ended hold (_numbers.lua), inbox prefix, origin (_origin.lua), and unless the hold is
--       unlocked: how (1 died, 2 not recoverable)
-- Answer {released, more} {left} {notowner}; more = 1: waiters are left that a poll must serve
local call = redis.call
--@include _numbers
local lock, state, queue, waiter = unpack(KEYS)
local caller_id, ended, inbox, origin, how = unpack(ARGV)
local fields = call('HMGET', state, 'hold', 'token', 'health', 'wanted')
local held, wanted = fields[1], fields[4] -- all four by unpack() would take longer where nobody waits
local is_mine = held and held:find(caller_id, 1, true) == 1 and held:byte(#caller_id + 1) == 32 -- a blank

-- The two usual cases, on plain names: tables and functions for the rest would take longer than the work.
-- Nobody waits.
if is_mine and not how and (not wanted or wanted == '0') then
  call('DEL', lock)
  call('HSET', state, 'hold', ended)
  return 'released'
end
-- Some wait, and nobody died.
local newest, health = fields[2], fields[3]
--@include _state
if is_mine and not (how or health) then
  local first, is_lone, is_last, is_free, signal = lone, lone, false, false, ''
  if not lone then
    local heads = call('ZRANGE', queue, '0', '1')
    local words = heads[1] and call('HGET', waiter, heads[1])
    first, is_last = words and heads[1] .. ' ' .. words, not heads[2]
  end
  local wanted = (is_lone or is_last) and '0' or nil
  if first then
    --@include _handover
    if handed_over then return 'released' end
  end
end
--@include _base
--@include _tell
--@include _queue
--@include _serve
local k, c = mutex_at(1), condition_at(1 + mutex_keys)
local s, at = read(k), circumstances(inbox, origin)
if c then check_queue(c) end
gather(k, s, at)
if not is_mine then
  local was_waiting = leave(k, caller_id) + (c and forget(c, caller_id) or 0)
  return { was_waiting > 0 and 'left' or 'notowner' }
end
if how then
  if how == '1' then owe_signal(k, s.label) end
  end_hold(k, s, tonumber(how), nil, ended)
end
if s.health == 2 then
  if s.hold then end_hold(k, s, 0, nil, ended) end
  tell_unrecoverable(k, inbox)
  return { 'released', 0 }
end
local winner, _, _, more = serve(k, s, at)
if s.hold and not winner then end_hold(k, s, 0, nil, ended) end
return { 'released', more == true and 1 or 0 }
