#!lua flags=allow-oom
-- A waiter of a condition does not want to wait any longer: the waiter wants the mutex.
-- KEYS  lock state queue waiter cond sleeper
-- ARGV  1 hold of the attempt, 2 lease ms, 3 highest token seen, 4 request, 5 robust 0|1, 6 inbox prefix,
--       7 since when the server is there, us, 8 the server's run id
-- Answer {owned, token, dead, now, n} {queued, position, remaining, 0, now, more, n} {unknown, 0, n}
--        {notrecoverable, n}; n = 1: a signal came first
--@include _own
--@include _state
--@include _tell
--@include _serve
--@include _condition
local k, c, s = KEYS, condition_of(KEYS), read(KEYS[2])
if not is_token(tonumber(ARGV[3])) then return redis.error_reply('DMSTATE the token seen is none of ours') end
local now, now_text = clock()
local me = { id = ARGV[1]:match('^%S+'), label = ARGV[1]:match('^%S+ %d+ (.*)$'), lease = ARGV[2], seen = ARGV[3],
  request = ARGV[4], robust = ARGV[5], heard = now_text }
check_queue(k)
check_queue(c)
local function owned(n, token, dead) return { 'owned', token, dead, now, n } end

local is_mine, was_mine = still_owns(k, s, me, ARGV[7], now)
if is_mine then
  return owned(s.label:find('@', 1, true) == 1 and 1 or 0, s.last, me.robust == '1' and s.health or 0)
end
if was_mine then enqueue(k, s, me, now) end
local is_held = call('HLEN', k[1]) > 0
if not is_held then note_death(k, s) end
if s.health == 2 then
  forget(c, me.id)
  forget(k, me.id)
  return { 'notrecoverable', 0 }
end
local is_signalled = 0
if call('ZSCORE', c[3], me.id) then
  move(k, c, s, me, now, false)
elseif call('ZSCORE', k[3], me.id) then
  is_signalled = (call('HGET', k[4], me.id) or ''):match('^%d+ %d+ %d %d+ %d+ @') and 1 or 0
  hear(k, me)
  revive(k, s, me.id)
else
  return { 'unknown', 0, 0 }
end
local winner, token, dead, more
if not is_held then
  winner, token, dead, more = serve(k, s, ARGV[6], now, ARGV[7], ARGV[8], me.id)
  if winner and winner.id == me.id then return owned(is_signalled, token, dead) end
  s.lease = winner and tonumber(winner.lease)
end
return { 'queued', call('ZRANK', k[3], me.id) + 1, left(k, s, me.lease, ARGV[7], now), 0, now, more == true and 1 or 0, is_signalled }
