#!lua
-- Takes a free lock, or waits in its queue.  Repeated with the same attempt it gives the same
-- answer, and a full lease.
-- KEYS  lock state queue waiter
-- ARGV  1 inbox prefix, 2 uuid, 3 thread, 4 attempt, 5 request, 6 lease ms, 7 robust, 8 try|queue,
--       9 highest token seen, 10 label, 11 arrival number to bring back or '',
--       12... <attempt>:<how> of this lock's releases whose answer was not seen
-- Answer {owned, token, dead, now} {busy, remaining, now} {queued, position, remaining, arrival, now}
--        {full} {notrecoverable}
--@include _own
local k = KEYS
local s = read(k[2])
if not s then return redis.error_reply('DMSTATE the state of this mutex was not written by libdmutex') end
local is_held = redis.call('HLEN', k[1]) > 0
local now = clock()
local me = { owner = ARGV[2] .. ':' .. ARGV[3], attempt = ARGV[4], request = ARGV[5], lease = ARGV[6],
  robust = ARGV[7], seen = tonumber(ARGV[9]), label = ARGV[10], heard = now }

-- The usual case: free, nobody died, nobody waits.
if not (is_held or s.owner or s.wanted or s.health == 2) then
  local token, dead = own(k, s, me, now)
  return { 'owned', token, dead, now }
end
--@include _serve
me.id = me.owner .. ':' .. me.attempt
check_queue(k)

if s.owner == me.owner and s.attempt == me.attempt then
  if not is_held then redis.call('HSET', k[1], me.owner, 1) end
  redis.call('PEXPIRE', k[1], me.lease)
  return { 'owned', s.last, me.robust == '1' and s.health or 0, now }
end
for i = 12, #ARGV do
  local attempt, how = ARGV[i]:match('^(%d+):(%d)$')
  if s.owner and s.attempt == attempt and s.owner:match('^[^:]*') == ARGV[2] then
    give_up(k, s, tonumber(how))
    is_held = false
  end
end
if not is_held then note_death(k, s) end
if s.health == 2 then
  forget(k, me.id)
  tell_unrecoverable(k, ARGV[1])
  return { 'notrecoverable' }
end

if ARGV[8] == 'try' then
  if is_held then return { 'busy', remaining(k, s, me.lease), now } end
  local winner, _, _, more = serve(k, s, ARGV[1], now)
  if winner or more then return { 'busy', winner and tonumber(winner.lease) or 0, now } end
  local token, dead = own(k, s, me, now)
  return { 'owned', token, dead, now }
end

local arrival = tonumber(redis.call('ZSCORE', k[3], me.id) or ARGV[11])
if not arrival then
  if redis.call('ZCARD', k[3]) >= 10000 then return { 'full' } end
  arrival = math.max((tonumber(redis.call('HGET', k[2], 'arrival') or 0) or 0) + 1, now)
  redis.call('HSET', k[2], 'arrival', text(arrival))
end
enter(k, me, arrival)
redis.call('HSET', k[2], 'wanted', 1)
keep(k, s, now)
if not is_held then
  local winner, token, dead = serve(k, s, ARGV[1], now, me.id)
  if winner and winner.id == me.id then return { 'owned', token, dead, now } end
  s.lease = winner and tonumber(winner.lease) or 0
end
return { 'queued', redis.call('ZRANK', k[3], me.id) + 1, remaining(k, s, me.lease), arrival, now }
