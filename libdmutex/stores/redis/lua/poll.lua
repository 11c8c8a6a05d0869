#!lua flags=allow-oom
-- The heartbeat of waiters, batched per process; also serves a free lock.
-- KEYS  per attempt: lock state queue waiter, and of a waiter of a condition: cond sleeper
-- ARGV  inbox prefix, origin (_origin.lua), then per attempt: id, request, lease ms, robust, highest token seen,
--       number of keys (4 or 6), label.  An attempt that waits for nothing (serving only) polls as attempt 0.
--@constant attempts_at = 3
--@constant attempt_words = 7
-- Answer now, then per attempt {owned, token, dead} {queued, position, remaining}
--        {waiting} {unknown}; where waiters are left to be served: {queued, position, remaining, 0, now, 1}
--        {waiting, 1} {unknown, 1}  {notrecoverable} {error, message}
local call = redis.call
--@include _numbers
--@include _base
--@include _queue
--@include _tell
--@include _serve
--@include _condition
local inbox, origin = unpack(ARGV, 1, attempts_at - 1)
local at = circumstances(inbox, origin)

local function look(k, c, me)
  local s = read(k)
  check_seen(me.seen)
  if c then check_queue(c) end
  gather(k, s, at)
  local is_held, more = call('HLEN', k.lock) > 0, false
  local is_mine, was_mine = still_owns(k, s, me, at)
  if is_mine then
    return { 'owned', s.last, me.robust == '1' and s.health or 0 }
  end
  if was_mine then enqueue(k, s, me, at) end
  if not is_held then note_death(k, s, at) end
  if s.health == 2 then
    forget(k, me.id)
    if c then forget(c, me.id) end
    tell_unrecoverable(k, inbox)
    return { 'notrecoverable' }
  end
  if not is_held then check_last(s) end
  if c and call('ZSCORE', c.queue, me.id) then
    hear(c, me)
    pay_debts(k, c, s, at)
  end
  local is_waiting = call('ZSCORE', k.queue, me.id)
  if is_waiting then
    hear(k, me)
    revive(k, s, me.id)
  end
  if not is_held then
    local winner, token, dead, rest = serve(k, s, at, is_waiting and me.id)
    if winner and winner.id == me.id then return { 'owned', token, dead } end
    s.lease = winner and tonumber(winner.lease)
    is_held, more = winner, rest
  end
  more = more == true and 1 or nil
  if not is_waiting then return { c and call('ZSCORE', c.queue, me.id) and 'waiting' or 'unknown', more } end
  return { 'queued', call('ZRANK', k.queue, me.id) + 1, left(k, s, me.lease, at), more and 0, more and at.now, more }
end

local answer, key = { at.now }, 1
for first = attempts_at, #ARGV, attempt_words do
  local id, request, lease, robust, seen, keys, label = unpack(ARGV, first, first + (attempt_words - 1))
  local me = { id = id, request = request, lease = lease, robust = robust, seen = seen, signal = '', label = label,
    heard = at.now_text }
  local c = keys + 0 > mutex_keys and condition_at(key + mutex_keys) or nil
  local is_done, result = pcall(look, mutex_at(key), c, me)
  answer[#answer + 1] = is_done and result or { 'error', type(result) == 'table' and result.err or tostring(result) }
  key = key + keys
end
return answer
