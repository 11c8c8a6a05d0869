#!lua flags=allow-oom
-- Settles a timeout against a grant: out of the queue, or the lock is mine for a whole lease.
-- KEYS  lock state queue waiter
-- ARGV  1 id, 2 lease ms, 3 robust
-- Answer {owned, token, dead, now} {left}
--@include _own
--@include _state
local s = read(KEYS[2])
if s.id == ARGV[1] then
  go_on(KEYS, ARGV[1], ARGV[2])
  return { 'owned', s.last, ARGV[3] == '1' and s.health or 0, (clock()) }
end
call('HLEN', KEYS[4])
call('ZREM', KEYS[3], ARGV[1])
call('HDEL', KEYS[4], ARGV[1])
return { 'left' }
