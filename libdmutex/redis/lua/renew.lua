#!lua flags=allow-oom
-- Confirms up to 100 holds for a whole lease each.
-- KEYS  per lock: lock state
-- ARGV  1 uuid, 2 label, then per lock: thread, attempt, lease ms, hold count, token
-- Answer now, then per lock 0 lost, 1 confirmed, 2 confirmed and others want it
--
-- A lock that is gone while nobody came after its owner is put back, with the same token: `state`
-- still names the hold, or all data of the name is gone.
--@include _own
local now = clock()
local answer = { now }

local function confirm(k, owner, attempt, lease, count, token)
  local is_read, s = pcall(read, k[2])
  if not (is_read and s) then return 0 end
  local is_known = s.owner == owner and s.attempt == attempt
  local is_blank = s.is_new and not s.owner and redis.call('EXISTS', k[1]) == 0
  if not (is_known or is_blank) then return 0 end
  local set = redis.pcall('HSET', k[1], owner, count)
  if type(set) == 'table' and set.err then return 0 end
  redis.call('PEXPIRE', k[1], lease)
  if is_blank then
    redis.call('HSET', k[2], 'owner', owner, 'attempt', attempt, 'lease', lease, 'token', token, 'label', ARGV[2])
  elseif s.lease ~= tonumber(lease) then
    redis.call('HSET', k[2], 'lease', lease)
  end
  keep(k, s, now)
  return s.wanted and 2 or 1
end

for i = 1, #KEYS / 2 do
  local a = (i - 1) * 5 + 2
  answer[i + 1] = confirm({ KEYS[i * 2 - 1], KEYS[i * 2] }, ARGV[1] .. ':' .. ARGV[a + 1], ARGV[a + 2],
    ARGV[a + 3], ARGV[a + 4], ARGV[a + 5])
end
return answer
