#!lua flags=no-writes
-- Shows what the server knows about several mutexes and conditions, for people.
-- KEYS  of each name: lock state queue waiter of a mutex, or cond sleeper of a condition
-- ARGV  how many waiters of each name to show, a lease ms, origin (_origin.lua), then of each name the number of
--       keys: 4 or 2
--@constant names_at = 4
-- Answer {now, ms for which the server grants nothing by itself}, then of each name
--        {owner ('' if free, '?' if `state` is lost), hold count, remaining ms, token, label, waiters, health, time
--        of the grant, lease ms, mark, last, waiter...}  {bound mutex or '', waiters, waiter...}  or a text: not ours
--        last: of a free mutex, the text of the ended hold (_numbers.lua), or ''
--        each waiter {id, arrival us, heard us, lease ms, label}
local call = redis.call
--@include _numbers
--@include _base
local most, lease, origin = unpack(ARGV, 1, names_at - 1)
most = tonumber(most)
local at = circumstances(nil, origin)

-- Adds the first waiters of a mutex, or of a condition, to the answer.  lone: the waiter that is in `state`.
local function tell_waiters(q, answer, lone)
  local ids = most > 0 and call('ZRANGE', q.queue, 0, most - 1, 'WITHSCORES') or {}
  for i = 1, #ids, 2 do
    local id, arrival = ids[i], ids[i + 1]
    local w = waiter_of(id, call('HGET', q.waiter, id) or '')
    answer[#answer + 1] = { id, arrival, w and w.heard or '0', w and w.lease or '0', w and w.label or '' }
  end
  if lone and most > 0 then answer[#answer + 1] = { lone.id, lone.heard, lone.heard, lone.lease, lone.label } end
  return answer
end

-- The last hold of a free mutex.  One that was not released ended with its lease.
local function last_of(k, s, mark)
  if not s.hold then return s.ended or '' end
  return ended_text(s, mark == mark_without_death and 0 or 1, lapsed_ms(k, s, at))
end

local function tell_mutex(k)
  local s, is_held = read(k), call('HLEN', k.lock) > 0
  local lone = lone_of(s, at)
  local mark, label = split(s.label or '')
  local health = not is_held and s.hold and mark ~= mark_without_death and 1 or s.health
  local owner = is_held and (s.id and owner_of(s.id) or '?') or ''
  return tell_waiters(k, { owner, is_held and s.count or 0, call('PTTL', k.lock), s.last, label,
    call('ZCARD', k.queue) + (lone and 1 or 0), health, s.last + epoch_us, s.lease or 0, mark or '',
    is_held and '' or last_of(k, s, mark) }, lone)
end

local function tell_condition(c)
  return tell_waiters(c, { call('HGET', c.waiter, 'mutex') or '', call('ZCARD', c.queue) })
end

local answers, key = { { at.now, grace(at, lease) } }, 1
for i = names_at, #ARGV do
  local keys = ARGV[i] + 0
  local is_mutex = keys == mutex_keys
  local is_done, result = pcall(is_mutex and tell_mutex or tell_condition,
    is_mutex and mutex_at(key) or condition_at(key))
  answers[#answers + 1] = is_done and result or type(result) == 'table' and result.err or tostring(result)
  key = key + keys
end
return answers
