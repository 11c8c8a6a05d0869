-- The waiters of a condition, c.

local function is_silent_at(now, w)
  local heard, lease = w.heard, w.lease
  --@include _silent
  return is_silent
end

-- Moves a waiter from the condition to the queue of the mutex.  is_signalled: the waiter carries the signal, which must
-- not expire with it before another waiter has polled, even if that one has the longest lease.
local function move(k, c, s, w, at, is_signalled)
  forget(c, w.id)
  w.signal = is_signalled and '@' .. c.queue .. ' ' or ''
  enqueue(k, s, w, at)
  if is_signalled then
    call('PEXPIRE', k.queue, carrier_ms)
    call('PEXPIRE', k.waiter, carrier_ms)
  end
end

-- Signals up to `most` waiters whose numbers are not above `upto`; if `most` is 1, one whose inbox gets the message, if
-- there is any.  Waiters that miss the message find out with their next poll.  Checks 256.  Returns how many were
-- moved, and whether the caller must continue with the waiters that were not checked.
local function signal(k, c, s, at, most, upto)
  local ids = call('ZRANGE', c.queue, '-inf', upto, 'BYSCORE', 'LIMIT', 0, signal_limit)
  local place, left, moved, deaf = call('ZCARD', k.queue), remaining(k, s, longest_lease_ms), 0, nil
  local is_free = left == 0
  for _, id in ipairs(ids) do
    local w = entry(c, id)
    if not w or is_gone(w, at) then
      forget(c, id)
    elseif (most > 1 or not is_silent_at(at.now, w)) and
        (tell(at.inbox, id, 'signalled ' .. attempt_of(id) .. ' ' .. place + moved + 1 .. ' ' .. left) or most > 1) then
      move(k, c, s, w, at, true)
      moved = moved + 1
      if is_free and moved == 1 then left = tonumber(w.lease) end -- it will be the owner
    else
      deaf = deaf or w
    end
    if moved == most then break end
  end
  if moved == 0 and deaf then
    move(k, c, s, deaf, at, true)
    moved = 1
  end
  return moved, #ids == signal_limit and (most > 1 or moved == 0)
end

-- Gives signals that died with their receivers to the present waiters.
local function pay_debts(k, c, s, at)
  local field = 'debt ' .. c.queue
  local debts = tonumber(call('HGET', k.state, field) or 0)
  if debts == 0 then return end
  local moved, is_more = signal(k, c, s, at, debts, '+inf')
  if is_more and moved < debts then
    call('HSET', k.state, field, debts - moved)
  else
    call('HDEL', k.state, field)
  end
end
