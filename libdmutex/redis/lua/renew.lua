#!lua flags=allow-oom
-- Confirms up to 100 holds for a whole lease each.
-- KEYS  per lock: lock state queue waiter
-- ARGV  per lock: owner, hold, lease ms, hold count, token
-- Answer now, then per lock 0 lost, 1 confirmed, 2 confirmed and wanted by others
--
-- A lock that is gone while nobody came after the owner is put back, with the same token: `state` still names the hold,
-- or all data of the name is gone, or is older than the hold: a server that came after another server may know less
-- than the earlier server.
--@include _own
--@include _state
local answer = { (clock()) }

-- The signal that brought the owner stays with the owner until the owner gives the lock back: until the owner's thread
-- has returned, only `hold` knows of the signal.
local function with_signal(hold, label)
  local front, rest = hold:match('^(%S+ %d+ )(.*)$')
  return front .. (label:match('^@%S+ ') or '') .. rest
end

local function confirm(k, owner, hold, lease, count, token)
  local is_read, s = pcall(read, k[2])
  if not (is_read and is_token(tonumber(token))) then return 0 end
  local is_known = s.id == hold:match('^%S+')
  local is_blank = s.is_new and not s.hold and call('EXISTS', k[1]) == 0
  local is_newer = not (is_known or s.is_new) and tonumber(token) > s.last
  if not (is_known or is_blank or is_newer) then return 0 end
  local set = redis.pcall('HSET', k[1], owner, count)
  if type(set) == 'table' and set.err then return 0 end
  if is_newer then
    call('DEL', k[1])
    call('HSET', k[1], owner, count)
  end
  call('PEXPIRE', k[1], lease)
  if is_known then
    if s.hold ~= hold then call('HSET', k[2], 'hold', with_signal(hold, s.label)) end -- another lease, perhaps
  else
    call('HSET', k[2], 'hold', hold, 'token', token)
    redis.pcall('ZREM', k[3], hold:match('^%S+')) -- it may have waited in an older copy
    redis.pcall('HDEL', k[4], hold:match('^%S+'))
  end
  if call('PTTL', k[2]) < 302400000 then expire_state(k) end
  return s.wanted and 2 or 1
end

for i = 1, #KEYS / 4 do
  local a = i * 5 - 5
  answer[i + 1] = confirm({ unpack(KEYS, i * 4 - 3, i * 4) }, ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[a + 5])
end
return answer
