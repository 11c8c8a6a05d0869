#!lua flags=allow-oom
-- Settles a timeout against a grant: out of the queue, or the lock is mine for a whole lease.
-- KEYS  lock state queue waiter
-- ARGV  id, lease ms, robust, origin (_origin.lua)
-- Answer {owned, token, dead, now} {left}
local call = redis.call
--@include _numbers
--@include _base
--@include _queue
--@include _tell
--@include _serve
local id, lease, robust, origin = unpack(ARGV)
local k, at = mutex_at(1), circumstances(nil, origin)
local s = read(k)
if still_owns(k, s, { id = id, lease = lease }, at) then
  return { 'owned', s.last, robust == '1' and s.health or 0, at.now }
end
gather(k, s, at)
forget(k, id)
return { 'left' }
