#!lua flags=allow-oom
-- The heartbeat of waiters, batched per process; serves a free lock by the way.
-- KEYS  per attempt: lock state queue waiter
-- ARGV  1 inbox prefix, 2 label, then per attempt: id, request, lease ms, robust, highest token seen.
--       An attempt that waits for nothing (serving only) polls as attempt 0.
-- Answer now, then per attempt {owned, token, dead} {queued, position, remaining} {unknown, more}
--        {notrecoverable} {error, message}
--@include _own
--@include _state
--@include _serve
local now, now_text = clock()
local inbox = ARGV[1]

local function look(k, me)
  local s = read(k[2])
  if not is_token(tonumber(me.seen)) then error({ err = 'DMSTATE the token seen is none of ours' }) end
  check_queue(k)
  local is_held, more = call('HLEN', k[1]) > 0, false
  if s.id == me.id then
    go_on(k, me.id, me.lease)
    return { 'owned', s.last, me.robust == '1' and s.health or 0 }
  end
  if not is_held then note_death(k, s) end
  if s.health == 2 then
    forget(k, me.id)
    tell_unrecoverable(k, inbox)
    return { 'notrecoverable' }
  end
  local is_waiting = call('ZSCORE', k[3], me.id)
  if is_waiting then hear(k, me) end
  if not is_held then
    local winner, token, dead, rest = serve(k, s, inbox, now, is_waiting and me.id)
    if winner and winner.id == me.id then return { 'owned', token, dead } end
    s.lease = winner and tonumber(winner.lease)
    is_held, more = winner, rest
  end
  if not is_waiting then return { 'unknown', more and 1 or 0 } end
  return { 'queued', call('ZRANK', k[3], me.id) + 1, is_held and remaining(k, s, me.lease) or 0 }
end

local answer = { now }
for i = 1, #KEYS / 4 do
  local key, a = i * 4 - 4, i * 5 - 3
  local me = { id = ARGV[a + 1], request = ARGV[a + 2], lease = ARGV[a + 3], robust = ARGV[a + 4],
    seen = ARGV[a + 5], label = ARGV[2], heard = now_text }
  local is_done, result = pcall(look, { KEYS[key + 1], KEYS[key + 2], KEYS[key + 3], KEYS[key + 4] }, me)
  answer[i + 1] = is_done and result or { 'error', type(result) == 'table' and result.err or tostring(result) }
end
return answer
