#!lua
-- Takes a free lock, or waits in its queue.  Repeated with the same attempt it gives the same
-- answer, and a full lease.
-- KEYS  lock state queue waiter
-- ARGV  1 owner, 2 hold, 3 lease ms, 4 highest token seen, 5 request, 6 robust 0|1, 7 try|queue,
--       8 arrival number to bring back or '', 9 inbox prefix,
--       10... <attempt>:<how> of this process's releases of this lock whose answer was not seen
-- Answer {owned, token, dead, now} {busy, remaining, now} {queued, position, remaining, arrival, now}
--        {full} {notrecoverable}
--@include _own
-- The usual case: free, nobody died, nobody waits.
local v = call('HMGET', KEYS[2], 'hold', 'token', 'health', 'wanted')
local is_held = call('HLEN', KEYS[1]) > 0
local now = clock()
local last = tonumber(v[2] or 0)
if not (v[1] or v[3] or v[4] or is_held) and last and last < 9007199254740991 then
  call('HSET', KEYS[1], ARGV[1], 1)
  call('PEXPIRE', KEYS[1], ARGV[3])
  return { 'owned', give_token(KEYS, { last = last }, ARGV[4], ARGV[2], now), 0, now }
end
--@include _state
--@include _serve
local k, s = KEYS, read(KEYS[2])
local inbox = ARGV[9]
local me = { id = ARGV[2]:match('^%S+'), label = ARGV[2]:match('^%S+ %d+ (.*)$'), lease = ARGV[3],
  seen = tonumber(ARGV[4]), request = ARGV[5], robust = ARGV[6], heard = now }
check_queue(k)

if s.id == me.id then
  go_on(k, me.id, me.lease)
  return { 'owned', s.last, me.robust == '1' and s.health or 0, now }
end
for i = 10, #ARGV do
  local attempt, how = ARGV[i]:match('^(%d+):(%d)$')
  if s.id and attempt_of(s.id) == attempt and s.id:match('^[^:]*') == me.id:match('^[^:]*') then
    give_up(k, s, tonumber(how))
    is_held = false
  end
end
if not is_held then note_death(k, s) end
if s.health == 2 then
  forget(k, me.id)
  tell_unrecoverable(k, inbox)
  return { 'notrecoverable' }
end

if ARGV[7] == 'try' then
  if is_held then return { 'busy', remaining(k, s, me.lease), now } end
  local winner, _, _, more = serve(k, s, inbox, now)
  if winner or more then return { 'busy', winner and tonumber(winner.lease) or 0, now } end
  local token, dead = own(k, s, me, now)
  return { 'owned', token, dead, now }
end

local arrival = tonumber(call('ZSCORE', k[3], me.id) or ARGV[8])
if not arrival then
  if call('ZCARD', k[3]) >= 10000 then return { 'full' } end
  arrival = math.max((tonumber(call('HGET', k[2], 'arrival') or 0) or 0) + 1, now)
end
enter(k, me, arrival)
call('HSET', k[2], 'wanted', 1, 'arrival', text(arrival))
if s.is_new then call('PEXPIRE', k[2], 604800000) end
if not is_held then
  local winner, token, dead = serve(k, s, inbox, now, me.id)
  if winner and winner.id == me.id then return { 'owned', token, dead, now } end
  s.lease = winner and tonumber(winner.lease)
end
return { 'queued', call('ZRANK', k[3], me.id) + 1, remaining(k, s, me.lease), arrival, now }
