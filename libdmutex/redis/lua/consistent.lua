#!lua flags=allow-oom
-- The owner has mended what an owner before it left half done.
-- KEYS  lock state
-- ARGV  1 owner, 2 attempt
-- Answer 1 done, also when repeated; 0 not the owner any more
local v = redis.call('HMGET', KEYS[2], 'owner', 'attempt')
if v[1] ~= ARGV[1] or v[2] ~= ARGV[2] then return 0 end
redis.call('HDEL', KEYS[2], 'health')
return 1
