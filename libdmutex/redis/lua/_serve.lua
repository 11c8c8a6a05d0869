-- The queue of a name: a zset of waiters' ids by arrival number, and a hash of each waiter's words:
-- "<request> <lease> <robust> <heard, server us> <token seen> <label>".  Before the label of a waiter that a signal
-- brought here stands "@<key of the condition> ", and goes with the label into `hold`.
local function entry(k, id)
  local e = call('HGET', k[4], id)
  if not e then return nil end
  local request, lease, robust, heard, seen, label = e:match('^(%d+) (%d+) (%d) (%d+) (%d+) (.*)$')
  if not (request and owner_of(id) and is_token(tonumber(seen))) then return nil end
  return { id = id, request = request, lease = lease, robust = robust, heard = heard, seen = seen, label = label }
end

-- A queue of the wrong type raises here, before the first write.  Returns how many wait.
local function check_queue(k)
  call('HLEN', k[4])
  return call('ZCARD', k[3])
end

-- Returns 1 if the waiter was there.
local function forget(k, id)
  call('HDEL', k[4], id)
  return call('ZREM', k[3], id)
end

-- A signal that dies with its receiver is owed to the next waiter of the condition, whose poll pays the debt: the
-- scripts of a mutex know no keys of conditions.
local function owe_signal(k, label)
  local condition = label:match('^@(%S+) ')
  if not condition then return end
  local field = 'debt ' .. condition
  call('HSET', k[2], field, (call('HGET', k[2], field) or 0) + 1)
  if call('PTTL', k[2]) == -1 then expire_state(k) end
end

-- A waiter leaves the queue without the lock.  Returns 1 if the waiter was there.
local function leave(k, id)
  local w = entry(k, id)
  if w then owe_signal(k, w.label) end
  return forget(k, id)
end

-- A waiter that was not heard of for a while is passed over and keeps the place: the next poll brings the waiter back.
-- After two leases the waiter is gone.
local function is_silent(w, now) return now - w.heard > math.max(w.lease * 2 / 3, 1000) * 1000 end
local function is_gone(w, now) return now - w.heard > math.max(w.lease * 2, 2000) * 1000 end

-- `cursor`: the arrival number up to which all waiters were passed over, once 16 in a row were.  The cursor outlives a
-- grant, so that the next look begins behind the passed-over waiters: each dead waiter is met once, not once per
-- handoff.
local function set_cursor(k, s, number)
  s.cursor = text(number)
  call('HSET', k[2], 'cursor', s.cursor)
end

-- A waiter that was heard of is not passed over any more: the next look begins at this waiter.
local function revive(k, s, id)
  local mine = s.cursor and call('ZSCORE', k[3], id)
  if mine and tonumber(mine) <= tonumber(s.cursor) then set_cursor(k, s, mine - 1) end
end

-- No look meets the waiters before the cursor, so up to 16 of the gone waiters are removed here.  The cursor goes with
-- the last of the gone waiters.
local function sweep(k, s, now)
  if not s.cursor then return end
  local heads = call('ZRANGE', k[3], 0, 15)
  for _, id in ipairs(heads) do
    local w = entry(k, id)
    if w and not is_gone(w, now) then
      if tonumber(call('ZSCORE', k[3], id)) <= tonumber(s.cursor) then return end
      heads = {}
      break
    end
    leave(k, id)
  end
  if #heads < 16 then
    call('HDEL', k[2], 'cursor')
    s.cursor = nil
  end
end

-- A new server may have forgotten an owner, which comes back within a lease (born.lua): ms for which the server grants
-- nothing of its own accord to an attempt of this lease.
local function grace(born, lease, now)
  return math.max(math.ceil((born + lease * 1000 - now) / 1000), 0)
end

-- Grants the free lock to the first live waiter among 16.  me: the caller's id, alive with any answer of the caller's
-- inbox, and told by the answer.  server: the run id of this server, which the grant names.
-- Returns the new owner or nil, the owner's token, dead, and whether there are more heads than were looked at, or
-- 'grace': a waiter must wait for the end of the grace.
local function serve(k, s, inbox, now, born, server, me)
  if me then revive(k, s, me) end
  sweep(k, s, now)
  local heads = call('ZRANGE', k[3], s.cursor and '(' .. s.cursor or '-inf', '+inf', 'BYSCORE', 'LIMIT', 0, 16)
  local winner, token, dead, passed
  for _, id in ipairs(heads) do
    local w = entry(k, id)
    if not w or (id ~= me and is_gone(w, now)) then
      leave(k, id)
    elseif grace(born, w.lease, now) > 0 then
      return nil, nil, nil, 'grace'
    else
      token, dead = next_token(s, w.seen, now), w.robust == '1' and s.health or 0
      if id == me or not is_silent(w, now) and tell(inbox, id, 'granted ' .. attempt_of(id) .. ' ' .. w.request ..
          ' ' .. text(token) .. ' ' .. w.lease .. ' ' .. dead .. ' ' .. server) then
        winner = w
        break
      end
      passed = id
    end
  end
  if passed and (s.cursor or #heads == 16 and not winner) then set_cursor(k, s, call('ZSCORE', k[3], passed)) end
  if winner then
    own(k, s, winner, text(token))
    forget(k, winner.id)
    if winner.id ~= me then call('HSET', k[2], 'told', text(token)) end -- for drop: an inbox was there
    return winner, token, dead, false
  end
  if #heads == 0 and not s.cursor then call('HDEL', k[2], 'wanted') end
  return nil, nil, nil, #heads == 16
end

-- Nobody can have the lock any more: 16 waiters are told to ask, and each waiter that asks tells on.
local function tell_unrecoverable(k, inbox)
  for _, id in ipairs(call('ZRANGE', k[3], 0, 15)) do
    if owner_of(id) then tell(inbox, id, 'ask ' .. attempt_of(id)) end
  end
end

-- The owner's hold ends.  how: 0 unlocked, 1 died, 2 unlocked and not recoverable.
local function give_up(k, s, how)
  call('DEL', k[1])
  call('HDEL', k[2], 'hold')
  s.hold, s.id, s.lease = false, nil, nil
  if how ~= 0 then
    s.health = how
    call('HSET', k[2], 'health', how)
  end
end

-- True if this server gave the token, as far as the token can tell: a token above the clock's tells no moment.
local function is_given_here(token, born, now)
  return tonumber(born) == 0 or token >= born - epoch_us and token <= now - epoch_us
end

-- True if the attempt that `hold` names is the owner.  Not if the lease ended before this server came: a later owner
-- may come back in the grace, and a delayed renewal of that owner, with a higher token, may be executed later.  Then
-- the attempt counts as not having owned yet, which the second result says; the attempt will own by a new token.
local function still_owns(k, s, me, born, now)
  if s.id ~= me.id then return false, false end
  if call('HLEN', k[1]) > 0 or (is_given_here(s.last, born, now) and grace(born, me.lease, now) == 0) then
    go_on(k, me.id, me.lease)
    return true, false
  end
  me.signal = s.label:match('^@%S+ ')
  give_up(k, s, 0)
  return false, true
end

-- A hold whose lease ended without being given back: the owner died.
local function note_death(k, s)
  if not s.hold then return end
  owe_signal(k, s.label)
  give_up(k, s, 1)
end

-- The ms that the server still grants the owner.  More than the lease: the server's clock was set back, or some program
-- wrote the key; then the lease is put right.
local function remaining(k, s, fallback)
  local lease = s.lease or tonumber(fallback)
  local left = call('PTTL', k[1])
  if left == -1 or left > lease then
    call('PEXPIRE', k[1], lease)
    return lease
  end
  return math.max(left, 0)
end

-- When to look again: the owner's lease may have ended, and the grace.
local function left(k, s, lease, born, now) return math.max(remaining(k, s, lease), grace(born, lease, now)) end

-- Notes that a waiter was heard of; a signal that the waiter carries stays with the waiter.  Both keys of the queue
-- live three leases on.
local function hear(k, w)
  local three = w.lease * 3
  local before = call('HGET', k[4], w.id)
  local signal = before and before:match('^%d+ %d+ %d %d+ %d+ (@%S+ )') or w.signal or ''
  call('HSET', k[4], w.id,
    w.request .. ' ' .. w.lease .. ' ' .. w.robust .. ' ' .. w.heard .. ' ' .. w.seen .. ' ' .. signal .. w.label)
  if call('PTTL', k[3]) < three then
    call('PEXPIRE', k[3], three)
    call('PEXPIRE', k[4], three)
  end
end

-- The last of the queue.
local function enqueue(k, s, w, now)
  s.arrival = math.max(s.arrival + 1, now)
  call('ZADD', k[3], 'NX', text(s.arrival), w.id)
  hear(k, w)
  call('HSET', k[2], 'wanted', 1, 'arrival', text(s.arrival))
  if s.is_new then expire_state(k) end
end
