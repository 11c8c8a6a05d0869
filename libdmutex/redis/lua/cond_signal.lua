#!lua flags=allow-oom
-- Signals waiters of a condition: the waiters wait for the mutex from here on, which is granted if the mutex is free.
-- KEYS  cond sleeper, and if the caller knows the mutex: lock state queue waiter
-- ARGV  1 the mutex, in the clients' words, or '', 2 inbox prefix, 3 how many at most, 4 the newest
--       arrival number that is meant, '' for all present waiters, 5 since when the server is there, us,
--       6 the server's run id
-- Answer {none} {bound, mutex}: call again with its keys  {moved, newest meant, left, more}; left: more
--        meant waiters are there, call again; more: a poll of the mutex must serve the mutex's waiters
local call = redis.call
local bound, newest = unpack(call('HMGET', KEYS[2], 'mutex', 'arrival'))
local inbox = ARGV[2]

--@include _epoch
--@include _tell
--@include _handover
-- A single signal, and a free mutex without waiters.
if bound and bound == ARGV[1] and ARGV[3] == '1' and ARGV[4] == '' then
  local hold, wanted = unpack(call('HMGET', KEYS[4], 'hold', 'wanted'))
  local is_free = not (hold or wanted) and call('HLEN', KEYS[3]) == 0
  local head = is_free and call('ZRANGE', KEYS[1], 0, 0)[1]
  if head and hand_over({ KEYS[3], KEYS[4], KEYS[1], KEYS[2] }, head, inbox, ARGV[5], ARGV[6], '@' .. KEYS[1] .. ' ') then
    return { 'moved', newest, 0, 0 }
  end
end
--@include _own
--@include _state
--@include _serve
--@include _condition
local k, c = { KEYS[3], KEYS[4], KEYS[5], KEYS[6] }, { [3] = KEYS[1], [4] = KEYS[2] }
if check_queue(c) == 0 or not bound then return { 'none' } end
if bound ~= ARGV[1] then return { 'bound', bound } end
local s, now = read(k[2]), clock()
local upto, more = ARGV[4] ~= '' and ARGV[4] or newest, false
check_queue(k)
local is_held = call('HLEN', k[1]) > 0

if s.health == 2 then
  for _, id in ipairs(call('ZRANGE', c[3], 0, 15)) do tell(inbox, id, 'ask ' .. (attempt_of(id) or 0)) end
  return { 'moved', upto, 0, 0 }
end
if not is_held then note_death(k, s) end
local _, left = signal(k, c, s, inbox, now, tonumber(ARGV[3]), upto)
if not is_held then _, _, _, more = serve(k, s, inbox, now, ARGV[5], ARGV[6]) end
return { 'moved', upto, left and 1 or 0, more == true and 1 or 0 }
