#!lua flags=allow-oom
-- A mutex object is destroyed.
-- KEYS  lock state queue waiter
-- ARGV  1 delete (anonymous: all keys go) | clean (a name that is not recoverable is usable again)
--       2 the text before the uuid in the name of an inbox
-- Answer 1 done, 0 some thread holds the mutex or waits for the mutex
--@include _own
--@include _state
--@include _tell
--@include _serve
local k, is_anonymous = KEYS, ARGV[1] == 'delete'
local waiting, s, now = check_queue(k), read(KEYS[2]), clock()
local is_held, left, told = call('HLEN', k[1]) > 0, call('PTTL', k[1]), call('HGET', k[2], 'told')

-- The dead keep no anonymous mutex.  A server that may not be asked for inboxes (nil) calls nobody dead.
local function is_dead(id) return is_anonymous and is_there(ARGV[2], id) == false end

-- A lock that is there is held, also by a process without an inbox.  The only exception: a waiter was killed, and
-- granted the lock before the server had read the end of the waiter's inbox.  `told` names that grant, the owner has
-- not been heard of since (a renewal would have lengthened the lease), and the inbox is gone.
local function is_granted_to_the_dead()
  local age = (now - epoch_us - s.last) / 1000
  return s.id and tonumber(told) == s.last and age >= 0 and left >= 0 and left <= s.lease - age + 2 and is_dead(s.id)
end

if is_held and not is_granted_to_the_dead() then return 0 end
local ids = call('ZRANGE', k[3], 0, 1023)
if #ids < waiting then return 0 end
for _, id in ipairs(ids) do
  local w = entry(k, id)
  if w and not is_gone(w, now) and not is_dead(id) then return 0 end
end
if is_anonymous then
  call('DEL', k[3], k[4])
  if is_held then
    call('PEXPIRE', k[2], math.max(left, 1)) -- what was granted ends by its lease only
  else
    call('DEL', k[2])
  end
elseif call('HGET', k[2], 'health') == '2' then
  call('HDEL', k[2], 'health')
end
return 1
