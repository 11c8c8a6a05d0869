#!lua flags=allow-oom
-- The owner has mended the state that an earlier owner left half done.
-- KEYS  state
-- ARGV  1 id
-- Answer 1 done, also when repeated; 0 not the owner any more
local hold = redis.call('HGET', KEYS[1], 'hold')
if not hold or hold:find(ARGV[1] .. ' ', 1, true) ~= 1 then return 0 end
redis.call('HDEL', KEYS[1], 'health')
return 1
