#!lua
-- Takes a free lock, or waits in the lock's queue.  Repeated with the same attempt the script gives the same answer,
-- and a full lease.
-- KEYS  lock state queue waiter, and for a signalled attempt: cond sleeper
-- ARGV  id, lease ms, the beginning of a waiter's words: "<request> <lease> <robust 0|1>", highest token seen,
--       try|queue|arrival number to bring back, inbox prefix, origin (_origin.lua), label, then of each unanswered
--       release of this lock by this process: <thread>:<attempt>:<how>
--@constant owed_at = 9 -- the first of them
-- Answer {owned, token, dead, now} {busy, remaining, now, ms for which a free lock is granted to nobody, more}
--        {queued, position, remaining, arrival, now, more}  more = 1: a poll must serve the waiters
--        {full} {notrecoverable}
local call = redis.call
--@include _numbers
local lock, state, queue, waiter, cond = unpack(KEYS)
local id, lease, ask, seen, manner, inbox, origin, label, owed = unpack(ARGV)
local held, newest, health, wanted, arrival =
  unpack(call('HMGET', state, 'hold', 'token', 'health', 'wanted', 'arrival'))
--@include _ended
--@include _clock
--@include _origin

-- The two usual cases, on plain names: tables and functions for the rest would take longer than the work.  Nobody died,
-- nothing is owed, and the clock makes a token that is new to everybody.
--@include _newest
local is_usual = is_newest and not (health or owed or cond)
local grace_us = born == '0' and 0 or born + lease * 1000 - now_text -- above 0: for so long nobody gets a free lock

-- Free, and nobody waits: it becomes the caller's.  A lock that is there although `state` was evicted
-- stays as it is: 0.
if is_usual and not held and (not wanted or wanted == '0') and grace_us <= 0 and
    call('HSET', lock, 'held', '1') == 1 then
  local granted, is_free, is_told, is_timed = id .. ' ' .. lease .. ' ' .. label, false, false, true
  --@include _grant
  return 'owned ' .. token_text .. ' 0 ' .. now_text
end

-- Held by another attempt, within its lease: the caller waits alone, or is the last of the queue, if it is not there
-- already.
--@include _state
local holder, longest, more_words = (held or ''):match(holder_form)
local ttl = holder and call('PTTL', lock) -- -2: there is no lock
if is_usual and manner == 'queue' and holder and holder ~= id and ttl >= 0 and ttl <= longest + 0 and not lone and
    (not arrival or #arrival == #now_text and arrival < now_text) then
  local is_lone = not (wanted or is_unsure)
  local waiting = is_lone and 0 or call('ZCARD', queue)
  local is_first = waiting == 0
  if is_lone or waiting < queue_limit and call('ZADD', queue, 'NX', now_text, id) == 1 then
    if is_lone then
      local first = id .. ' ' .. ask .. ' ' .. now_text .. ' ' .. seen .. ' ' .. label
      call('HSET', state, 'wanted', first, 'arrival', now_text)
    else
      local words = ask .. ' ' .. now_text .. ' ' .. seen .. ' ' .. label
      --@include _insert
      if wanted then
        call('HSET', state, 'arrival', now_text)
      else
        call('HSET', state, 'wanted', '1', 'arrival', now_text)
      end
    end
    if is_first and more_words ~= '' and select(3, held:match(hold_form)):gsub(signal_form, ''):find(mark_form) then
      --@include _wanted
    end
    if grace_us > ttl * 1000 then ttl = math.ceil(grace_us / 1000) end
    return ('queued %d %d '):format(waiting + 1, ttl) .. now_text .. ' ' .. now_text
  end
end
--@include _base
--@include _queue
--@include _tell
--@include _serve
local request, robust = ask:match(ask_form)
local k, c, back = mutex_at(1), condition_at(1 + mutex_keys), tonumber(manner) and manner
local s, now = read(k), now_text + 0
local at = { now = now, now_text = now_text, inbox = inbox, born = born + 0, origin = origin }
local me = caller(id .. ' ' .. lease .. ' ' .. label, seen, request, robust, at)

if c then -- a server with older data may have it on the condition still
  call('ZREM', c.queue, me.id)
  call('HDEL', c.waiter, me.id)
end
gather(k, s, at)
local is_held = call('HLEN', k.lock) > 0

if s.id == me.id and manner == 'try' and not is_held and grace(at, lease) > 0 then
  return { 'busy', left(k, s, lease, at), now, grace(at, lease) } -- no place in the queue to go to: all stays
end
if still_owns(k, s, me, at) then
  return { 'owned', s.last, robust == '1' and s.health or 0, now }
end
for i = owed_at, #ARGV do
  local who, how = ARGV[i]:match('^(%d+:%d+):(%d)$')
  local other = me.id:match(uuid_form) .. ':' .. who
  if s.id == other then
    if how == '1' then owe_signal(k, s.label) end
    end_hold(k, s, tonumber(how), held_ms(s, at))
    is_held = false
  else
    leave(k, other)
  end
end
if not is_held then note_death(k, s, at) end
if s.health == 2 then
  forget(k, me.id)
  tell_unrecoverable(k, inbox)
  return { 'notrecoverable' }
end
if not is_held then check_last(s) end

local winner, won, dead, more
if manner == 'try' then
  local wait = is_held and 0 or grace(at, lease)
  if is_held then tell_owner(k, s, at, 0) end -- the next try may find a lock that is free
  if is_held or wait > 0 then return { 'busy', left(k, s, lease, at), now, wait } end
  winner, won, dead, more = serve(k, s, at, me.id)
  if winner and winner.id == me.id then return { 'owned', won, dead, now } end
  if winner or more then
    return { 'busy', winner and tonumber(winner.lease) or 0, now, 0, more == true and 1 or 0 }
  end
  won, dead = take(k, s, me, at)
  return { 'owned', won, dead, now }
end

local position, place = line_up(k, s, me, back, at)
if not position then return { 'full' } end
if not is_held then
  winner, won, dead, more = serve(k, s, at, me.id)
  if winner and winner.id == me.id then return { 'owned', won, dead, now } end
  s.lease = winner and tonumber(winner.lease)
  position = call('ZRANK', k.queue, me.id) + 1
end
return { 'queued', position, left(k, s, lease, at), place, now, more == true and 1 or 0 }
