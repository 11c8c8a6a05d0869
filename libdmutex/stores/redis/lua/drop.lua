#!lua flags=allow-oom
-- A mutex object is destroyed.
-- KEYS  lock state queue waiter
-- ARGV  delete (anonymous: all keys go) | clean (a name that is not recoverable is usable again),
--       the text before the uuid in the name of an inbox
-- Answer 1 done, 0 some thread holds the mutex or waits for the mutex
local call = redis.call
--@include _numbers
--@include _base
--@include _queue
--@include _tell
local what, inbox = unpack(ARGV)
local k, is_anonymous = mutex_at(1), what == 'delete'
local s, at = read(k), circumstances(inbox)
gather(k, s, at)
local is_held, left, told = call('HLEN', k.lock) > 0, call('PTTL', k.lock), call('HGET', k.state, 'told')

-- The dead do not keep an anonymous mutex.  If the server may not be asked for inboxes (nil), nobody counts as dead.
local function is_dead(id) return is_anonymous and is_there(inbox, id) == false end

-- A lock that is there is held, even by a process without an inbox.  The only exception: a waiter was killed, and was
-- granted the lock before the server noticed the end of its inbox.  `told` names that grant, the owner has not been
-- heard from since (a renewal would have extended the lease), and the inbox is gone.
local function is_granted_to_the_dead()
  local age = (at.now - epoch_us - s.last) / 1000
  return s.id and tonumber(told) == s.last and age >= 0 and left >= 0 and left <= s.lease - age + 2 and is_dead(s.id)
end

if is_held and not is_granted_to_the_dead() then return 0 end
local ids = call('ZRANGE', k.queue, 0, drop_limit - 1)
if #ids < call('ZCARD', k.queue) then return 0 end
for _, id in ipairs(ids) do
  local w = entry(k, id)
  if w and not is_gone(w, at) and not is_dead(id) then return 0 end
end
if is_anonymous then
  call('DEL', k.queue, k.waiter)
  if is_held then
    call('PEXPIRE', k.state, math.max(left, 1)) -- what was granted ends by its lease only
  else
    call('DEL', k.state)
  end
elseif s.health == 2 then
  call('HDEL', k.state, 'health')
end
return 1
