#!lua
-- Takes a free lock, or waits in the lock's queue.  Repeated with the same attempt the script gives the same answer,
-- and a full lease.
-- KEYS  lock state queue waiter, and for a signalled attempt: cond sleeper
-- ARGV  id, lease ms, highest token seen, request, robust 0|1, try|queue, arrival number to bring back or '',
--       inbox prefix, since when the server is there (us), the server's run id, label, then of each unanswered release
--       of this lock by this process: <thread>:<attempt>:<how>
-- Answer {owned, token, dead, now} {busy, remaining, now, ms for which a free lock is granted to nobody, more}
--        {queued, position, remaining, arrival, now, more}  more = 1: a poll must serve the waiters
--        {full} {notrecoverable}
local call = redis.call
--@include _numbers
local lock, state, queue, waiter, cond = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local id, lease, seen, request, robust, manner, back, inbox, born, server, label, owed = unpack(ARGV)
--@include _state
local ttl = call('PTTL', lock) -- -2: there is no lock
--@include _clock
--@include _birth

-- The two usual cases, on plain names: tables and functions for the rest would take longer than the work.  Nobody died,
-- nothing is owed, and the clock makes a token and an arrival that are new to all.
local last, token, arrived, least = tonumber(newest or 0), now - epoch_us, tonumber(arrival or 0), tonumber(seen)
local is_usual = not (health or owed or cond) and last and last < token and arrived and arrived < now and
  least and least < token
local grace_us = born + lease * 1000 - now -- above 0: for so long a free lock is granted to nobody

-- Free, and nobody waits: the caller's.
if is_usual and ttl == -2 and not (held or wanted) and grace_us <= 0 then
  local granted, token_text = id .. ' ' .. lease .. ' ' .. label, ('%d'):format(seconds - epoch_s) .. micros
  local is_free, is_told = true, false
  --@include _grant
  return 'owned ' .. token_text .. ' 0 ' .. now_text
end

-- Held by another attempt, within its lease: the caller waits alone, or is the last of the queue, if it is not there
-- already.
local holder, longest, more_words = (held or ''):match(holder_form)
if is_usual and manner == 'queue' and back == '' and ttl >= 0 and holder and holder ~= id and ttl <= longest + 0 and
    not lone then
  local is_lone, words = not (wanted or is_unsure),
    request .. ' ' .. lease .. ' ' .. robust .. ' ' .. now_text .. ' ' .. seen .. ' ' .. label
  local waiting = is_lone and 0 or call('ZCARD', queue)
  local is_first = waiting == 0
  if is_lone or waiting < queue_limit and call('ZADD', queue, 'NX', now_text, id) == 1 then
    if is_lone then
      call('HSET', state, 'wanted', id .. ' ' .. words, 'arrival', now_text)
    else
      --@include _insert
      call('HSET', state, 'wanted', '1', 'arrival', now_text)
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
local k, c, s = mutex_at(1), condition_at(5), parse(held, newest, health, wanted, cursor, arrival, depth, lone)
local at = { now = now, now_text = now_text, inbox = inbox, born = tonumber(born), server = server }
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
for i = 12, #ARGV do
  local who, how = ARGV[i]:match('^(%d+:%d+):(%d)$')
  local other = me.id:match('^[^:]*') .. ':' .. who
  if s.id == other then
    if how == '1' then owe_signal(k, s.label) end
    end_hold(k, s, tonumber(how))
    is_held = false
  else
    leave(k, other)
  end
end
if not is_held then note_death(k, s) end
if s.health == 2 then
  forget(k, me.id)
  tell_unrecoverable(k, inbox)
  return { 'notrecoverable' }
end

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
