#!lua flags=allow-oom
-- Since when this server has been the one it is: from its start, or since it came after another, whose
-- data it has.  The first client that comes notes it.
-- KEYS  the server's mark, a hash
-- Answer us of the server's clock; 0: it does not say who it is
local call = redis.call
local info = redis.pcall('INFO', 'server')
if type(info) ~= 'string' then return 0 end
local id, uptime = info:match('run_id:(%x+)'), info:match('uptime_in_seconds:(-?%d+)')
if not (id and uptime) then return 0 end
local mark, t = call('HMGET', KEYS[1], 'server', 'born'), call('TIME')
local now, born = t[1] * 1000000 + t[2], tonumber(mark[2] or nil)
if mark[1] == id and born then return born end
born = mark[1] and now or now - math.max(uptime - 1, 0) * 1000000 -- of two clocks in whole seconds
call('HSET', KEYS[1], 'server', id, 'born', string.format('%.0f', born))
return born
