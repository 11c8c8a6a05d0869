-- What every script reads first, and the one place where a lock gets an owner.
-- k: the four keys of a name (lock, state, queue, waiter).  s: what `state` says.  now: server us.
local function text(number) return string.format('%.0f', number) end

local function clock()
  local t = redis.call('TIME')
  return t[1] * 1000000 + t[2]
end

-- Numbers beyond 2^53 are not ours: refuse before anything is written.
local function read(state)
  local v = redis.call('HMGET', state, 'owner', 'attempt', 'lease', 'token', 'health', 'wanted', 'until', 'cursor')
  local s = { owner = v[1], attempt = v[2], lease = tonumber(v[3] or 0), last = tonumber(v[4] or 0),
    health = tonumber(v[5] or 0), wanted = v[6], keep = tonumber(v[7] or 0), cursor = v[8], is_new = not v[4] }
  if not (s.lease and s.last and s.health and s.keep) or s.last > 9007199254740991 then
    return nil
  end
  return s
end

-- `state` outlives the lock by a week after its last use; refreshed when half of that is left.
local function keep(k, s, now)
  if s.keep * 1000000 - now < 302400000000 then
    s.keep = math.floor(now / 1000000) + 604800
    redis.call('HSET', k[2], 'until', text(s.keep))
    redis.call('PEXPIRE', k[2], 604800000)
  end
end

-- w: the new owner (owner, attempt, lease, robust, seen, label).  A robust owner learns of a death;
-- one that is not robust clears it.  Returns the token and 1 for "an owner died".
local function next_token(s, w, now) return math.max(s.last + 1, w.seen + 1, now) end

local function own(k, s, w, now)
  local token = next_token(s, w, now)
  redis.call('HSET', k[1], w.owner, 1)
  redis.call('PEXPIRE', k[1], w.lease)
  redis.call('HSET', k[2], 'owner', w.owner, 'attempt', w.attempt, 'lease', w.lease, 'token', text(token),
    'label', w.label)
  keep(k, s, now)
  if s.health == 1 and w.robust ~= '1' then
    redis.call('HDEL', k[2], 'health')
    return token, 0
  end
  return token, s.health
end
