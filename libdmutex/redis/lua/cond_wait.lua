#!lua
-- Enqueues an attempt on a condition and gives the caller's hold of the mutex back, at once.
-- KEYS  lock state queue waiter cond sleeper
-- ARGV  1 id of the hold, 2 how the hold ends (0 unlock, 2 not recoverable), 3 hold of the attempt,
--       4 lease ms, 5 highest token seen, 6 request, 7 robust 0|1, 8 the mutex, in the clients' words,
--       9 inbox prefix, 10 since when the server is there, us, 11 the server's run id
-- Answer {waiting, more, now} {notowner} {bound} {full} {notrecoverable}; to a repeated call also the state
--        of the attempt: {owned, token, dead, now} {queued, position, remaining, 0, now}
--@include _own
if not is_token(tonumber(ARGV[5])) then return redis.error_reply('DMSTATE the token seen is none of ours') end
--@include _state
--@include _tell
--@include _serve
--@include _condition
local k, c, s = KEYS, condition_of(KEYS), read(KEYS[2])
local now, now_text = clock()
local inbox, born, server = ARGV[9], ARGV[10], ARGV[11]
local me = { id = ARGV[3]:match('^%S+'), label = ARGV[3]:match('^%S+ %d+ (.*)$'), lease = ARGV[4], seen = ARGV[5],
  request = ARGV[6], robust = ARGV[7], heard = now_text }
check_queue(k)
local waiting, bound, newest = check_queue(c), unpack(call('HMGET', c[4], 'mutex', 'arrival'))

-- Repeated: the attempt comes before the hold, because the attempt has given the hold back.
if call('ZSCORE', c[3], me.id) then
  hear(c, me)
  return { 'waiting', 0, now }
end
local is_mine, was_mine = still_owns(k, s, me, born, now)
if is_mine then
  return { 'owned', s.last, me.robust == '1' and s.health or 0, now }
end
if was_mine then enqueue(k, s, me, now) end
local rank = call('ZRANK', k[3], me.id)
if rank then
  hear(k, me)
  revive(k, s, me.id)
  return { 'queued', rank + 1, left(k, s, me.lease, born, now), 0, now }
end

if s.id ~= ARGV[1] then return { 'notowner' } end
if bound and bound ~= ARGV[8] and waiting > 0 then
  for _, id in ipairs(call('ZRANGE', c[3], 0, 15)) do
    local w = entry(c, id)
    if not w or is_gone(w, now) then forget(c, id) end
  end
  waiting = call('ZCARD', c[3])
  if waiting > 0 then return { 'bound' } end
end
if waiting >= 10000 then return { 'full' } end
if ARGV[2] ~= '0' then
  give_up(k, s, tonumber(ARGV[2]))
  tell_unrecoverable(k, inbox)
  return { 'notrecoverable' }
end
local arrival = text(math.max(tonumber(newest or 0) + 1, now))
call('ZADD', c[3], arrival, me.id)
hear(c, me)
call('HSET', c[4], 'mutex', ARGV[8], 'arrival', arrival)
if waiting == 0 then call('HDEL', k[2], 'debt ' .. c[3]) end
give_up(k, s, 0)
local _, _, _, more = serve(k, s, inbox, now, born, server)
return { 'waiting', more == true and 1 or 0, now }
