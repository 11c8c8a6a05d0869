-- How a free lock goes to a waiter, and what must be known of owners and waiters for that.

--@include _owe

-- A waiter leaves the queue without the lock.  Returns 1 if the waiter was there.
local function leave(k, id)
  local w = entry(k, id)
  if w then owe_signal(k, w.signal) end
  return forget(k, id)
end

-- No search visits the waiters before the cursor, so up to 16 that are gone are removed here.  The cursor is deleted
-- with the last of them.
local function sweep(k, s, at)
  if not s.cursor then return end
  local heads = call('ZRANGE', k.queue, 0, look_limit - 1)
  for _, id in ipairs(heads) do
    local w = entry(k, id)
    if w and not is_gone(w, at) then
      if tonumber(call('ZSCORE', k.queue, id)) <= tonumber(s.cursor) then return end
      heads = {}
      break
    end
    leave(k, id)
  end
  if #heads < look_limit then
    call('HDEL', k.state, 'cursor')
    s.cursor = false
  end
end

-- Sets the lock, or extends it to a whole lease.
local function put_lock(k, lease)
  call('HSET', k.lock, 'held', 1)
  call('PEXPIRE', k.lock, lease)
end

-- Offers the lock to a waiter of q: k itself, or a condition.  me: the caller's id.
-- Returns the token and whether the new owner learns of a death, or nil.
local function offer(k, s, q, w, at, me)
  local lock, state, queue, waiter = k.lock, k.state, q.queue, q.waiter
  local newest, is_free = text(s.last), s.is_free
  local id, request, lease, robust, heard, seen, label =
    w.id, w.request, w.lease, w.robust, w.heard, w.seen, w.signal .. w.label
  local now, inbox, origin, is_me = at.now, at.inbox, at.origin, w.id == me
  local token, dead, wanted = next_token(s, seen, at), robust == '1' and s.health or 0, s.is_wanted and '1' or '0'
  local is_timed, token_text, uuid, attempt = token == now - epoch_us, text(token), id:match(id_form)
  local is_last, is_lone = false, false -- not known, and a condition's keys hold more than waiters
  --@include _offer
  if not is_owner then return nil end
  return token, inherit(k, s, robust)
end

-- Gives the free lock to the caller, w.  Returns the token and whether the caller learns of a death.
local function take(k, s, w, at)
  local lock, state, lease, newest, is_free, is_told = k.lock, k.state, w.lease, text(s.last), true, false
  local token, granted = next_token(s, w.seen, at), w.id .. ' ' .. w.lease .. ' ' .. w.signal .. w.label
  local is_timed, token_text = token == at.now - epoch_us, text(token)
  --@include _grant
  return token, inherit(k, s, w.robust)
end

-- Grants the lock to the first live waiter among 16, which ends the hold of an owner that releases.  me: the caller's
-- id, which counts as alive whatever its inbox, and learns of a grant by the answer.  Returns the new owner or nil, its
-- token, dead, and whether there are more waiters than were checked, or 'grace': a waiter must wait for the end of the
-- grace.
local function serve(k, s, at, me)
  if not is_followed(s.last) then return nil end
  if me then revive(k, s, me) end
  sweep(k, s, at)
  local behind = s.cursor and '(' .. s.cursor or '-inf'
  local heads = call('ZRANGE', k.queue, behind, '+inf', 'BYSCORE', 'LIMIT', 0, look_limit)
  local winner, token, dead, passed
  for place, id in ipairs(heads) do
    local w = entry(k, id)
    if not w or (id ~= me and is_gone(w, at)) then
      leave(k, id)
    elseif grace(at, w.lease) > 0 then
      return nil, nil, nil, 'grace'
    else
      s.is_wanted = place < #heads or passed or s.cursor or #heads == look_limit
      token, dead = offer(k, s, k, w, at, me)
      if token then
        winner = w
        break
      end
      passed = id
    end
  end
  if passed and (s.cursor or #heads == look_limit and not winner) then
    set_cursor(k, s, call('ZSCORE', k.queue, passed))
  end
  if winner then return winner, token, dead, false end
  s.is_wanted = #heads > 0 or s.cursor
  if not s.is_wanted then call('HDEL', k.state, 'wanted') end
  return nil, nil, nil, #heads == look_limit
end

-- Nobody can get the lock from now on: tells 16 waiters to ask, and each one that asks tells others.
local function tell_unrecoverable(k, inbox)
  for _, id in ipairs(call('ZRANGE', k.queue, 0, look_limit - 1)) do
    if owner_of(id) then tell(inbox, id, 'ask ' .. attempt_of(id)) end
  end
end

-- True if this server gave the token, as far as the token shows: one above the clock's shows no time.
local function is_given_here(token, at)
  return at.born == 0 or token >= at.born - epoch_us and token <= at.now - epoch_us
end

-- True if the attempt that `hold` names is the owner; its lease begins again, and the lock is put back if it had ended.
-- Not if the lease ended before this server came: a later owner may come back in the grace, and its delayed renewal,
-- with a higher token, may be executed later.  Then the attempt counts as not having owned yet, which the second result
-- says, and will own with a new token.
local function still_owns(k, s, me, at)
  if s.id ~= me.id then return false, false end
  if call('HLEN', k.lock) > 0 or (is_given_here(s.last, at) and grace(at, me.lease) == 0) then
    put_lock(k, me.lease)
    return true, false
  end
  me.signal = s.label:match(signal_form) or ''
  end_hold(k, s, 0, lapsed_ms(k, s, at))
  return false, true
end

-- A hold whose lease ended without a release: the owner died, or, with the mark "- ", perhaps nobody was inside.
local function note_death(k, s, at)
  s.is_free = true
  if not s.hold then return end
  owe_signal(k, s.label)
  end_hold(k, s, split(s.label) == mark_without_death and 0 or 1, lapsed_ms(k, s, at))
end

-- The ms that the server still grants the owner.  If they are more than the lease, the server's clock was set back, or
-- another program wrote the key; then the lease is corrected.
local function remaining(k, s, fallback)
  local lease = s.lease or tonumber(fallback)
  local left = call('PTTL', k.lock)
  if left == -1 or left > lease then
    call('PEXPIRE', k.lock, lease)
    return lease
  end
  return math.max(left, 0)
end

-- When to check again: the owner's lease, and the grace, may have ended by then.
local function left(k, s, lease, at) return math.max(remaining(k, s, lease), grace(at, lease)) end

-- The last of the queue.
local function enqueue(k, s, w, at)
  local arrival = next_arrival(s, at)
  if insert(k, w, text(arrival), false) then tell_owner(k, s, at, 1) else hear(k, w) end
  note_wanted(k, s, arrival)
end
