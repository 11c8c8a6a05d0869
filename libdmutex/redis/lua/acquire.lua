#!lua
-- Takes a free lock, or waits in the lock's queue.  Repeated with the same attempt the script gives the same answer,
-- and a full lease.
-- KEYS  lock state queue waiter, and for a signalled attempt: cond sleeper
-- ARGV  1 owner, 2 hold, 3 lease ms, 4 highest token seen, 5 request, 6 robust 0|1, 7 try|queue,
--       8 arrival number to bring back or '', 9 inbox prefix, 10 since when the server is there, us,
--       11 the server's run id, 12... <thread>:<attempt>:<how> of this process's unanswered releases of this lock
-- Answer {owned, token, dead, now} {busy, remaining, now, ms for which a free lock is granted to nobody, more}
--        {queued, position, remaining, arrival, now, more}  more = 1: a poll must serve the waiters
--        {full} {notrecoverable}
local call = redis.call
local v = call('HMGET', KEYS[2], 'hold', 'token', 'health', 'wanted', 'cursor', 'arrival')
local ttl = call('PTTL', KEYS[1]) -- -2: there is no lock
local t = call('TIME')
local now, now_text = t[1] * 1000000 + t[2], t[1] .. ('000000'):sub(#t[2] + 1) .. t[2]
--@include _epoch

if KEYS[5] then -- a server with older data may have it on the condition still
  local id = ARGV[2]:match('^%S+')
  call('ZREM', KEYS[5], id)
  call('HDEL', KEYS[6], id)
end

-- The two usual cases, written out: a third of the time that the parts below would take.  Nobody died, and the clock
-- makes a token and an arrival that are new to all.
local last, seen, arrived = tonumber(v[2] or 0), tonumber(ARGV[4]), tonumber(v[6] or 0)
local token = now - epoch_us
local is_usual = not v[3] and last and last < token and seen and seen < token and arrived and arrived < now

-- Free, and nobody waits: the caller's.
if is_usual and not (ttl ~= -2 or v[1] or v[4]) and (ARGV[10] == '0' or now - ARGV[10] >= ARGV[3] * 1000) then
  call('HSET', KEYS[1], ARGV[1], 1)
  call('PEXPIRE', KEYS[1], ARGV[3])
  call('HSET', KEYS[2], 'hold', ARGV[2], 'token', string.format('%.0f', token))
  if math.floor(last / 86400000000) ~= math.floor(token / 86400000000) then call('PEXPIRE', KEYS[2], 604800000) end
  return { 'owned', token, 0, now }
end

-- Held by another attempt, and nothing to catch up on: the caller is the last of the queue.
local id, label = ARGV[2]:match('^(%S+) %d+ (.*)$')
local holder, lease = (v[1] or ''):match('^(%S+) (%d+) ')
if is_usual and ttl >= 0 and holder and holder ~= id and ARGV[7] == 'queue' and ARGV[8] == '' and not ARGV[12] then
  local waiting = call('ZCARD', KEYS[3])
  if waiting < 10000 and ttl <= tonumber(lease) and not call('HGET', KEYS[4], id) then
    local three = ARGV[3] * 3
    call('ZADD', KEYS[3], now_text, id)
    call('HSET', KEYS[4], id,
      ARGV[5] .. ' ' .. ARGV[3] .. ' ' .. ARGV[6] .. ' ' .. now_text .. ' ' .. ARGV[4] .. ' ' .. label)
    if waiting == 0 or call('PTTL', KEYS[3]) < three then
      call('PEXPIRE', KEYS[3], three)
      call('PEXPIRE', KEYS[4], three)
    end
    call('HSET', KEYS[2], 'wanted', 1, 'arrival', now_text)
    return { 'queued', waiting + 1, ttl, now, now }
  end
end
--@include _own
if not is_token(tonumber(ARGV[4])) then return redis.error_reply('DMSTATE the token seen is none of ours') end
--@include _state
--@include _tell
--@include _serve
local k, s = KEYS, parse(v)
local inbox, born, server = ARGV[9], ARGV[10], ARGV[11]
local me = { id = id, label = label, lease = ARGV[3], seen = ARGV[4], request = ARGV[5], robust = ARGV[6],
  heard = now_text }
local waiting, is_held = check_queue(k), call('HLEN', k[1]) > 0

if s.id == me.id and ARGV[7] == 'try' and not is_held and grace(born, me.lease, now) > 0 then
  return { 'busy', left(k, s, me.lease, born, now), now, grace(born, me.lease, now) } -- it has no place in the queue to go to: all stays as it is
end
if still_owns(k, s, me, born, now) then
  return { 'owned', s.last, me.robust == '1' and s.health or 0, now }
end
for i = 12, #ARGV do
  local who, how = ARGV[i]:match('^(%d+:%d+):(%d)$')
  local id = me.id:match('^[^:]*') .. ':' .. who
  if s.id == id then
    if how == '1' then owe_signal(k, s.label) end
    give_up(k, s, tonumber(how))
    is_held = false
  else
    leave(k, id)
    waiting = call('ZCARD', k[3])
  end
end
if not is_held then note_death(k, s) end
if s.health == 2 then
  forget(k, me.id)
  tell_unrecoverable(k, inbox)
  return { 'notrecoverable' }
end

if ARGV[7] == 'try' then
  local wait = is_held and 0 or grace(born, me.lease, now)
  if is_held or wait > 0 then return { 'busy', left(k, s, me.lease, born, now), now, wait } end
  local winner, won, dead, more = serve(k, s, inbox, now, born, server, me.id)
  if winner and winner.id == me.id then return { 'owned', won, dead, now } end
  if winner or more then return { 'busy', winner and tonumber(winner.lease) or 0, now, 0, more == true and 1 or 0 } end
  local token = next_token(s, me.seen, now)
  return { 'owned', token, own(k, s, me, text(token)), now }
end

if waiting >= 10000 and not call('ZSCORE', k[3], me.id) then return { 'full' } end
local arrival, position = math.max(s.arrival + 1, now), waiting + 1
local arrival_text = ARGV[8] ~= '' and ARGV[8] or arrival == now and now_text or text(arrival)
if call('ZADD', k[3], 'NX', arrival_text, me.id) == 0 or ARGV[8] ~= '' then
  arrival, position = tonumber(call('ZSCORE', k[3], me.id)), call('ZRANK', k[3], me.id) + 1
  arrival_text = text(math.max(arrival, s.arrival))
end
hear(k, me)
revive(k, s, me.id)
call('HSET', k[2], 'wanted', 1, 'arrival', arrival_text)
if s.is_new then expire_state(k) end
local winner, token, dead, more
if not is_held then
  winner, token, dead, more = serve(k, s, inbox, now, born, server, me.id)
  if winner and winner.id == me.id then return { 'owned', token, dead, now } end
  s.lease = winner and tonumber(winner.lease)
  position = call('ZRANK', k[3], me.id) + 1
end
return { 'queued', position, left(k, s, me.lease, born, now), arrival, now, more == true and 1 or 0 }
