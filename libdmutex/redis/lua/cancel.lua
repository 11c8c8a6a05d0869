#!lua flags=allow-oom
-- Settles a timeout against a grant: out of the queue, or the lock is mine for a whole lease.
-- KEYS  lock state queue waiter
-- ARGV  1 owner, 2 attempt, 3 lease ms, 4 robust
-- Answer {owned, token, dead, now} {left}
--@include _own
local k = KEYS
local s = read(k[2])
if not s then return redis.error_reply('DMSTATE the state of this mutex was not written by libdmutex') end
local id = ARGV[1] .. ':' .. ARGV[2]
if s.owner == ARGV[1] and s.attempt == ARGV[2] then
  redis.call('HSET', k[1], ARGV[1], 1)
  redis.call('PEXPIRE', k[1], ARGV[3])
  return { 'owned', s.last, ARGV[4] == '1' and s.health or 0, clock() }
end
redis.call('HLEN', k[4])
redis.call('ZREM', k[3], id)
redis.call('HDEL', k[4], id)
return { 'left' }
