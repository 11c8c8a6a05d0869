#!lua flags=allow-oom
-- Signals waiters of a condition: from now on they wait for the mutex, which is granted to one of them if it is free.
-- KEYS  cond sleeper, and if the caller knows the mutex: lock state queue waiter
-- ARGV  the mutex, in the clients' words, or '', inbox prefix, how many at most, the newest arrival number that is
--       meant, '' for all present waiters, origin (_origin.lua)
-- Answer {none} {bound, mutex}: call again with its keys  {moved, newest meant, left, more}; left: more
--        meant waiters are there, call again; more: a poll of the mutex must serve the mutex's waiters
local call = redis.call
--@include _numbers
local queue, waiter, lock, state = unpack(KEYS)
local mutex, inbox, most, upto, origin = unpack(ARGV)
local bound, last_arrival = unpack(call('HMGET', waiter, 'mutex', 'arrival'))
local id = call('ZRANGE', queue, 0, 0)[1]
if not (id and bound) then return { 'none' } end
if bound ~= mutex then return { 'bound', bound } end
local held, newest, health, wanted = unpack(call('HMGET', state, 'hold', 'token', 'health', 'wanted'))
--@include _state
--@include _ended
-- The usual case, on plain names, as in release.lua: a single signal, and a free mutex without waiters, where nobody
-- died.  The first waiter becomes the owner, and gets only the message "granted".
if most == '1' and upto == '' and not (health or held or wanted) and call('HLEN', lock) == 0 then
  local is_free, signal, wanted = true, '@' .. queue .. ' ', not is_unsure and '0' or nil
  local first = id .. ' ' .. (call('HGET', waiter, id) or '')
  local is_last, is_lone = false, false -- the keys hold more than waiters
  --@include _handover
  if handed_over then return { 'moved', last_arrival, 0, 0 } end
end
--@include _base
--@include _queue
--@include _tell
--@include _serve
--@include _condition
local k, c, at = mutex_at(1 + condition_keys), condition_at(1), circumstances(inbox, origin)
local s = read(k)
upto = upto ~= '' and upto or last_arrival
check_queue(c)
gather(k, s, at)
local is_held, more = call('HLEN', k.lock) > 0, false

if s.health == 2 then
  for _, id in ipairs(call('ZRANGE', c.queue, 0, look_limit - 1)) do
    tell(inbox, id, 'ask ' .. (attempt_of(id) or 0))
  end
  return { 'moved', upto, 0, 0 }
end
if not is_held then note_death(k, s, at) end
local _, is_left = signal(k, c, s, at, tonumber(most), upto)
if not is_held then _, _, _, more = serve(k, s, at) end
return { 'moved', upto, is_left and 1 or 0, more == true and 1 or 0 }
