#!lua flags=allow-oom
-- The owner has repaired the state that an earlier owner left half done.
-- KEYS  state
-- ARGV  id
-- Answer 1 done, also when repeated; 0 no longer the owner
local state, id = KEYS[1], ARGV[1]
local hold = redis.call('HGET', state, 'hold')
if not hold or hold:find(id .. ' ', 1, true) ~= 1 then return 0 end
redis.call('HDEL', state, 'health')
return 1
