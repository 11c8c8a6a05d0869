-- Definitions for the unusual cases; the numbers (_numbers.lua) come before.
--
-- k: the keys of a mutex: lock, state, queue, waiter.  s: the contents of `state`.
-- at: the circumstances of the call: now and now_text (server us), inbox (prefix), born (us), origin (_origin.lua).
-- id: <uuid>:<thread>:<attempt>, an attempt of a thread.
-- w: a waiter, and a caller that wants the lock: id, request, lease, robust, heard, seen, signal, label.
local function is_token(number) return number and number >= 0 and number < token_limit end

-- Numbers go to the server as whole digits: Lua's own text of a large number has an exponent.
local function text(number) return string.format('%.0f', number) end

local function circumstances(inbox, origin)
  origin = origin or unknown_origin
  --@include _clock
  --@include _origin
  return { now = now_text + 0, now_text = now_text, inbox = inbox, born = born + 0, origin = origin }
end

-- The keys of a mutex, which begin at KEYS[first].
local function mutex_at(first)
  return { lock = KEYS[first], state = KEYS[first + 1], queue = KEYS[first + 2], waiter = KEYS[first + 3] }
end

-- The keys of a condition, or nil: queue and waiter are for its waiters what those of a mutex are for the mutex's.
-- waiter has two more fields: `mutex`, the bound mutex, and `arrival`, the newest number.
local function condition_at(first)
  return KEYS[first] and { queue = KEYS[first], waiter = KEYS[first + 1] } or nil
end

local function owner_of(id) return id:match('^(.*):%d+$') end
local function attempt_of(id) return id:match('^.*:(%d+)$') end

-- Splits a label of `hold`.  Returns the mark, or nil, and the words for people.
local function split(label)
  local rest = label:gsub(signal_form, '')
  local mark = rest:match(mark_form)
  return mark, rest:sub(mark and 3 or 1)
end

-- True if another token can follow, which must be below 2^52, too.
local function is_followed(token) return is_token(token) and is_token(token + 1) end

-- A token beyond 2^52 is not ours: refused before anything is written.
local function check_seen(seen)
  if not is_followed(tonumber(seen)) then error({ err = 'DMSTATE the token seen is none of ours' }) end
end

-- The caller, from its hold and the numbers of its request.
local function caller(hold, seen, request, robust, at)
  check_seen(seen)
  local id, lease, label = hold:match(hold_form)
  return { id = id, label = label, lease = lease, seen = seen, request = request, robust = robust, signal = '',
    heard = at.now_text }
end

-- A waiter from its words.  nil: the words are not ours.
local function waiter_of(id, words)
  local request, lease, robust, heard, seen, label = words:match(words_form)
  if not (request and owner_of(id) and is_followed(tonumber(seen))) then return nil end
  local signal = label:match(signal_form) or ''
  return { id = id, request = request, lease = lease, robust = robust, heard = heard, seen = seen, signal = signal,
    label = label:sub(#signal + 1) }
end

-- Reads `state`.
local function read(k)
  local held, newest, health, wanted, cursor, arrival, depth =
    unpack(call('HMGET', k.state, 'hold', 'token', 'health', 'wanted', 'cursor', 'arrival', 'depth'))
  local ended = held
  --@include _state
  --@include _ended
  local count, its_token = (depth or ''):match(depth_form)
  local s = { hold = held, ended = not held and ended, last = tonumber(newest or 0), is_new = not newest,
    health = tonumber(health or 0), is_wanted = wanted, cursor = cursor, arrival = tonumber(arrival or 0),
    depth = depth,
    count = its_token == newest and tonumber(count) or 1 } -- an earlier hold's depth says nothing
  local lone_id, lone_words = (lone or ''):match(lone_form)
  s.lone = lone_id and waiter_of(lone_id, lone_words)
  if held then
    s.id, s.lease, s.label = held:match(hold_form)
    s.lease = tonumber(s.lease)
  end
  local is_ours = is_token(s.last) and s.health and s.arrival and (s.lease or not held) and
    not (s.ended and not s.ended:find(ended_form))
  if not is_ours or cursor and not tonumber(cursor) then
    error({ err = 'DMSTATE the state of this mutex was not written by libdmutex' })
  end
  return s
end

-- A free lock whose last token no other can follow is granted to nobody.
local function check_last(s)
  if not is_followed(s.last) then
    error({ err = 'DMSTATE the tokens of this mutex are used up: somebody has written a huge one; delete its state' })
  end
end

-- The lone waiter, unless its words are older than a queue can be.
local function lone_of(s, at)
  local w = s.lone
  return w and at.now - w.heard <= w.lease * (queue_leases * 1000) and w or nil
end

-- `state` outlives the lock by a week.
local function expire_state(k) call('PEXPIRE', k.state, state_ms) end

-- A new server may have forgotten an owner, which comes back within a lease (born.lua): ms for which the server grants
-- nothing by itself to an attempt with this lease.
local function grace(at, lease) return math.max(math.ceil((at.born + lease * 1000 - at.now) / 1000), 0) end

local function next_token(s, seen, at) return math.max(s.last + 1, seen + 1, at.now - epoch_us) end

-- Whether an owner learns of a death; an owner that is not robust clears the mark.
local function inherit(k, s, robust)
  if s.health ~= 1 then return 0 end
  if robust == '1' then return 1 end
  call('HDEL', k.state, 'health')
  return 0
end

-- The ms since the grant of the hold.
local function held_ms(s, at) return math.max(math.floor((at.now - epoch_us - s.last) / 1000), 0) end

-- The same for a hold whose lease has ended.  The last renewal extended the life of `state`, so the remaining life of
-- `state` says when that was; without a renewal the lease began with the grant.
local function lapsed_ms(k, s, at)
  local held, renewed_ago = held_ms(s, at), state_ms - call('PTTL', k.state)
  return math.min(held, math.max(held - renewed_ago, 0) + s.lease)
end

-- The text of the ended hold of s.
local function ended_text(s, how, ms)
  local _, label = split(s.label)
  return '-' .. how .. ' ' .. ms .. ' ' .. (s.id:match(thread_form) or 0) .. ' ' .. label
end

-- Ends the owner's hold, which lasted `ms`; `ended` is its text if the owner sends it.  how: 0 unlocked, 1 died, 2
-- unlocked and not recoverable, 3 broken.
local function end_hold(k, s, how, ms, ended)
  call('DEL', k.lock)
  if s.hold then call('HSET', k.state, 'hold', ended or ended_text(s, how, ms)) end
  s.hold, s.id, s.lease, s.is_free = false, nil, nil, true
  if how ~= 0 then
    s.health = how == 2 and 2 or 1
    call('HSET', k.state, 'health', s.health)
  end
end
