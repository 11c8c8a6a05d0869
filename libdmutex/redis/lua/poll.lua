#!lua flags=allow-oom
-- The heartbeat of waiters, batched per process; also serves a free lock.
-- KEYS  per attempt: lock state queue waiter, and of a waiter of a condition: cond sleeper
-- ARGV  1 inbox prefix, 2 label, 3 since when the server is there, us, 4 the server's run id, then per attempt:
--       id, request, lease ms, robust, highest token seen, number of keys (4 or 6).  An attempt that waits for
--       nothing (serving only) polls as attempt 0.
-- Answer now, then per attempt {owned, token, dead} {queued, position, remaining}
--        {waiting} {unknown}; where waiters are left to be served: {queued, position, remaining, 0, now, 1}
--        {waiting, 1} {unknown, 1}  {notrecoverable} {error, message}
--@include _own
--@include _state
--@include _tell
--@include _serve
--@include _condition
local now, now_text = clock()
local inbox, born, server = ARGV[1], ARGV[3], ARGV[4]

local function look(k, me)
  local s = read(k[2])
  if not is_token(tonumber(me.seen)) then error({ err = 'DMSTATE the token seen is none of ours' }) end
  check_queue(k)
  local c = k[5] and condition_of(k)
  if c then check_queue(c) end
  local is_held, more = call('HLEN', k[1]) > 0, false
  local is_mine, was_mine = still_owns(k, s, me, born, now)
  if is_mine then
    return { 'owned', s.last, me.robust == '1' and s.health or 0 }
  end
  if was_mine then enqueue(k, s, me, now) end
  if not is_held then note_death(k, s) end
  if s.health == 2 then
    forget(k, me.id)
    if c then forget(c, me.id) end
    tell_unrecoverable(k, inbox)
    return { 'notrecoverable' }
  end
  if c and call('ZSCORE', c[3], me.id) then
    hear(c, me)
    pay_debts(k, c, s, inbox, now)
  end
  local is_waiting = call('ZSCORE', k[3], me.id)
  if is_waiting then
    hear(k, me)
    revive(k, s, me.id)
  end
  if not is_held then
    local winner, token, dead, rest = serve(k, s, inbox, now, born, server, is_waiting and me.id)
    if winner and winner.id == me.id then return { 'owned', token, dead } end
    s.lease = winner and tonumber(winner.lease)
    is_held, more = winner, rest
  end
  more = more == true and 1 or nil
  if not is_waiting then return { c and call('ZSCORE', c[3], me.id) and 'waiting' or 'unknown', more } end
  return { 'queued', call('ZRANK', k[3], me.id) + 1, left(k, s, me.lease, born, now), more and 0, more and now, more }
end

local answer, key = { now }, 0
for i = 1, (#ARGV - 4) / 6 do
  local a = i * 6 - 2
  local me = { id = ARGV[a + 1], request = ARGV[a + 2], lease = ARGV[a + 3], robust = ARGV[a + 4],
    seen = ARGV[a + 5], label = ARGV[2], heard = now_text }
  local is_done, result = pcall(look, { unpack(KEYS, key + 1, key + ARGV[a + 6]) }, me)
  answer[i + 1] = is_done and result or { 'error', type(result) == 'table' and result.err or tostring(result) }
  key = key + ARGV[a + 6]
end
return answer
