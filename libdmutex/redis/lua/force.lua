#!lua flags=allow-oom
-- Breaks anybody's lock: the next owner has a higher token and, robust, learns of a death.
-- KEYS  lock state queue waiter
-- ARGV  1 inbox prefix
-- Answer {broken, more} {free}
--@include _own
--@include _serve
local k = KEYS
local s = read(k[2])
if not s then return redis.error_reply('DMSTATE the state of this mutex was not written by libdmutex') end
check_queue(k)
local is_held = redis.call('HLEN', k[1]) > 0
if not (is_held or s.owner) then return { 'free' } end
if s.owner then tell(ARGV[1], s.owner, 'lost ' .. s.attempt) end
give_up(k, s, 1)
s.last = s.last + 1
redis.call('HSET', k[2], 'token', text(s.last))
local now = clock()
keep(k, s, now)
local _, _, _, more = serve(k, s, ARGV[1], now)
return { 'broken', more and 1 or 0 }
