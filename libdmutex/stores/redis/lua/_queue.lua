-- The queue of a mutex, and the waiters of a condition: a zset of ids by arrival number, and a hash of each waiter's
-- words.  q: the keys of a mutex or of a condition, of which queue and waiter are used here.  The only waiter of a
-- mutex may be in `state` instead (s.lone); gather() puts it into the queue.

-- A waiter from its words.  nil: no waiter, or the words are not ours.
local function entry(q, id)
  local words = call('HGET', q.waiter, id)
  return words and waiter_of(id, words) or nil
end

local function words_of(w, signal)
  return w.request .. ' ' .. w.lease .. ' ' .. w.robust .. ' ' .. w.heard .. ' ' .. w.seen .. ' ' .. signal .. w.label
end

-- Notes that a waiter was heard from; a signal that it carries stays with it.
local function hear(q, w)
  local before = entry(q, w.id)
  local queue, waiter, lease, is_first = q.queue, q.waiter, w.lease, false
  call('HSET', waiter, w.id, words_of(w, before and before.signal ~= '' and before.signal or w.signal))
  --@include _keep
end

-- Puts a waiter into the queue.  Returns false if it is there already, and then nothing was written.
local function insert(q, w, arrival, is_first)
  local queue, waiter, id, lease, words = q.queue, q.waiter, w.id, w.lease, words_of(w, w.signal)
  if call('ZADD', queue, 'NX', arrival, id) == 0 then return false end
  --@include _insert
  return true
end

-- Returns 1 if the waiter was there.
local function forget(q, id)
  call('HDEL', q.waiter, id)
  return call('ZREM', q.queue, id)
end

-- Returns how many wait.  A queue of the wrong type raises an error here, before the first write.
local function check_queue(q)
  call('HLEN', q.waiter)
  return call('ZCARD', q.queue)
end

-- From now on all waiters of a mutex are in the queue.  The lone waiter came when it was last heard from.  Keys of a
-- mutex with a wrong type raise an error here, before the first write; those of a condition are checked before.
local function gather(k, s, at)
  check_queue(k)
  if not s.lone then return end
  call('HLEN', k.lock)
  local w = lone_of(s, at)
  if w then insert(k, w, w.heard, true) end
  call('HSET', k.state, 'wanted', w and 1 or 0)
  s.lone, s.is_wanted = nil, w ~= nil
end

-- A waiter that was not heard from for two leases is gone.
local function is_gone(w, at) return at.now - w.heard > math.max(w.lease * gone_leases, gone_least_ms) * 1000 end

-- The mutex has waiters, of whom the newest has this arrival number.
local function note_wanted(k, s, arrival)
  s.arrival, s.is_wanted = arrival, true
  call('HSET', k.state, 'wanted', 1, 'arrival', text(arrival))
  if s.is_new then expire_state(k) end
end

-- `cursor`: the arrival number up to which all waiters were passed over, once 16 in a row were.  The cursor outlives a
-- grant, so that the next search begins after the waiters that were passed over: each dead waiter is met once, not once
-- per handoff.
local function set_cursor(k, s, number)
  s.cursor = text(number)
  call('HSET', k.state, 'cursor', s.cursor)
  if s.is_new then expire_state(k) end
end

-- A waiter that was heard from is no longer passed over: the next search begins with it.
local function revive(k, s, id)
  local mine = s.cursor and call('ZSCORE', k.queue, id)
  if mine and tonumber(mine) <= tonumber(s.cursor) then set_cursor(k, s, mine - 1) end
end

-- Tells the owner of a marked hold only of the first waiter, which is in the queue already: `waiting` 1; and of a try
-- while the queue is empty: `waiting` 0.
local function tell_owner(k, s, at, waiting)
  if not (s.hold and split(s.label) and call('ZCARD', k.queue) == waiting) then return end
  local holder, inbox = s.id, at.inbox
  --@include _wanted
end

local function next_arrival(s, at) return math.max(s.arrival + 1, at.now) end

-- Puts the caller into the queue, at the arrival number `back`, or at the end if there is none; a waiter that is in the
-- queue keeps its place.  Returns position and arrival number, or nil if the queue is full.
local function line_up(k, s, w, back, at)
  local waiting = call('ZCARD', k.queue)
  if waiting >= queue_limit and not call('ZSCORE', k.queue, w.id) then return nil end
  local arrival = next_arrival(s, at)
  local is_new = insert(k, w, back or text(arrival), waiting == 0)
  if is_new then tell_owner(k, s, at, 1) end
  if is_new and not back then
    note_wanted(k, s, arrival)
    return waiting + 1, arrival
  end
  if not is_new then hear(k, w) end
  arrival = tonumber(call('ZSCORE', k.queue, w.id))
  note_wanted(k, s, math.max(arrival, s.arrival))
  revive(k, s, w.id)
  return call('ZRANK', k.queue, w.id) + 1, arrival
end
