#!lua flags=allow-oom
-- Settles a timeout against a grant: out of the queue, or the lock is mine for a whole lease.
-- KEYS  lock state queue waiter
-- ARGV  1 id, 2 lease ms, 3 robust, 4 since when the server is there, us
-- Answer {owned, token, dead, now} {left}
--@include _own
--@include _state
--@include _tell
--@include _serve
local s, now = read(KEYS[2]), clock()
if still_owns(KEYS, s, { id = ARGV[1], lease = ARGV[2] }, ARGV[4], now) then
  return { 'owned', s.last, ARGV[3] == '1' and s.health or 0, now }
end
call('HLEN', KEYS[4])
call('ZREM', KEYS[3], ARGV[1])
call('HDEL', KEYS[4], ARGV[1])
return { 'left' }
