#!lua flags=allow-oom
-- Ends an attempt in any state: gives the lock back and grants the lock to the first live waiter, or leaves the queue,
-- or the condition.
-- KEYS  lock state queue waiter, and for a waiter of a condition: cond sleeper
-- ARGV  id, how (0 unlock, 1 died, 2 not recoverable), inbox prefix, origin (_origin.lua)
-- Answer {released, more} {left} {notowner}; more = 1: waiters are left that a poll must serve
local call = redis.call
--@include _numbers
local lock, state, queue, waiter = unpack(KEYS)
local caller_id, how, inbox, origin = unpack(ARGV)
local held, newest, health, wanted = unpack(call('HMGET', state, 'hold', 'token', 'health', 'wanted'))
--@include _state
local is_mine = held and held:find(caller_id .. ' ', 1, true) == 1

-- The two usual cases, on plain names: tables and functions for the rest would take longer than the work.
-- Nobody waits.
if is_mine and how == '0' and not wanted then
  call('DEL', lock)
  call('HDEL', state, 'hold')
  return 'released'
end
-- Some wait, and nobody died.
if is_mine and how == '0' and not health then
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
if how ~= '0' then
  if how == '1' then owe_signal(k, s.label) end
  end_hold(k, s, tonumber(how))
end
if s.health == 2 then
  if s.hold then end_hold(k, s, 0) end
  tell_unrecoverable(k, inbox)
  return { 'released', 0 }
end
local winner, _, _, more = serve(k, s, at)
if s.hold and not winner then end_hold(k, s, 0) end
return { 'released', more == true and 1 or 0 }
