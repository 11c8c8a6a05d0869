#!lua flags=allow-oom
-- Confirms up to 100 holds for a whole lease each.
--
-- Without the guard of a Cluster: a renewal works while the slot moves, as long as lock and state, its declared keys,
-- are on one node.  The other keys may be on the other node, so a command on them may fail.
--@unguarded
--
-- KEYS  per lock: lock state
-- ARGV  per lock: hold, with a mark if the hold is marked from now on; lease ms, hold count, token, and the keys queue,
--       waiter, cond and sleeper: the last two empty, unless the attempt has waited on a condition
--@constant hold_keys = 2
--@constant hold_words = 8
-- Answer now, then per lock 0 lost, 1 confirmed, 2 confirmed and wanted by others; finally, if a hold on several
--        servers was lost here, since when the server is there
--
-- The newest renewal decides whether the hold is marked, and how.  A lock that is gone although nobody came after the
-- owner is put back, with the same token: `state` still names the hold, or all data of the name are gone, or are older
-- than the hold, because a server that took over from another one may know less than that.
--
-- A token with a plus sign is that of a hold on several servers, each of which had its own token: then the server
-- takes over a higher token, but never another attempt's hold, because the token says nothing about the holds of this
-- server.
local call = redis.call
--@include _numbers
--@include _base
--@include _owe
local at = circumstances()

-- The signal that brought the owner stays with it until it gives the lock back: until its thread has returned, only
-- `hold` knows of the signal.
local function with_signal(hold, label)
  local front, rest = hold:match('^(%S+ %d+ )(.*)$')
  return front .. (label:match(signal_form) or '') .. rest
end

-- `wanted` of `state` may still be set after the last waiter has left.  The owner of a marked hold would give it back
-- for nothing, so its queue is counted.
local function has_waiter(k, s, hold)
  local _, _, label = hold:match(hold_form)
  if lone_of(s, at) or not (s.is_wanted and label and split(label)) then return s.is_wanted end
  local waiting = redis.pcall('ZCARD', k.queue)
  return type(waiting) == 'number' and waiting > 0
end

-- The attempt no longer waits, neither alone nor in the queue nor on its condition.  A signal that it carries may have
-- come when its thread already had the lock.
local function forget_waiter(k, s, id)
  local words = redis.pcall('HGET', k.waiter, id)
  local w = type(words) == 'string' and waiter_of(id, words)
  if s.lone and s.lone.id == id then
    call('HSET', k.state, 'wanted', 0)
    s.lone, s.is_wanted = nil, false
  end
  if w then owe_signal(k, w.signal) end
  redis.pcall('ZREM', k.queue, id)
  redis.pcall('HDEL', k.waiter, id)
  if k.cond ~= '' then
    redis.pcall('ZREM', k.cond, id)
    redis.pcall('HDEL', k.sleeper, id)
  end
end

local function confirm(k, hold, lease, count, token)
  local is_read, s = pcall(read, k)
  if not (is_read and is_token(tonumber(token))) then return 0 end
  local id = hold:match('^%S+')
  local is_known = s.id == id
  local is_blank = s.is_new and not s.hold and call('EXISTS', k.lock) == 0
  local is_part = token:sub(1, 1) == '+'
  if is_part then token = token:sub(2) end
  local is_newer = not (is_known or s.is_new or is_part) and tonumber(token) > s.last
  if not (is_known or is_blank or is_newer) then return 0 end
  local set = redis.pcall('HSET', k.lock, 'held', 1)
  if type(set) == 'table' and set.err then return 0 end
  call('PEXPIRE', k.lock, lease)
  if is_known then
    if s.hold ~= hold then call('HSET', k.state, 'hold', with_signal(hold, s.label)) end -- another lease, perhaps
    if is_part and tonumber(token) > s.last then
      call('HSET', k.state, 'token', token)
    else
      token = text(s.last)
    end
  else
    if s.hold then owe_signal(k, s.label) end -- the older owner may have died since
    call('HSET', k.state, 'hold', hold, 'token', token)
    forget_waiter(k, s, id) -- it may have waited in an older copy
  end
  local depth = count .. ' ' .. token
  if depth ~= (s.depth or '1 ' .. token) then call('HSET', k.state, 'depth', depth) end
  expire_state(k) -- lapsed_ms() relies on it
  return has_waiter(k, s, hold) and 2 or 1
end

local answer, key, has_lost_part = { at.now }, 1, false
for first = 1, #ARGV, hold_words do
  local hold, lease, count, token, queue, waiter, cond, sleeper = unpack(ARGV, first, first + (hold_words - 1))
  local k = { lock = KEYS[key], state = KEYS[key + 1], queue = queue, waiter = waiter, cond = cond, sleeper = sleeper }
  local result = confirm(k, hold, lease, count, token)
  answer[#answer + 1] = result
  has_lost_part = has_lost_part or result == 0 and token:sub(1, 1) == '+'
  key = key + hold_keys
end
if has_lost_part then
  local born = call('HGET', KEYS[1]:match(prefix_form) .. ':server', 'since') -- false: deleted, so the server is new
  answer[#answer + 1] = tonumber(born or at.now)
end
return answer
