-- All of `state`, from the answer of HMGET for these fields.  A token beyond 2^52 is not ours: refused before anything
-- is written.
local fields = { 'hold', 'token', 'health', 'wanted', 'cursor', 'arrival' }

local function parse(v)
  local s = { hold = v[1], last = tonumber(v[2] or 0), health = tonumber(v[3] or 0), wanted = v[4], cursor = v[5],
    arrival = tonumber(v[6] or 0), is_new = not v[2] }
  if s.hold then
    s.id, s.lease, s.label = s.hold:match('^(%S+) (%d+) (.*)$')
    s.lease = tonumber(s.lease)
  end
  if not (is_token(s.last) and s.health and s.arrival) or (s.hold and not s.lease) then
    error({ err = 'DMSTATE the state of this mutex was not written by libdmutex' })
  end
  return s
end

local function read(state) return parse(call('HMGET', state, unpack(fields))) end

local function owner_of(id) return id:match('^(.*):%d+$') end
local function attempt_of(id) return id:match('^.*:(%d+)$') end

-- A robust owner learns of a death; an owner that is not robust clears the mark.
local function heir(k, s, robust)
  if s.health ~= 1 then return 0 end
  if robust == '1' then return 1 end
  call('HDEL', k[2], 'health')
  return 0
end

-- w: the new owner (id, lease, robust, label), with the owner's token as text.  Returns 1 for "one died".
local function own(k, s, w, token_text)
  call('HSET', k[1], owner_of(w.id), 1)
  call('PEXPIRE', k[1], w.lease)
  give_token(k, w.id .. ' ' .. w.lease .. ' ' .. w.label, token_text)
  return heir(k, s, w.robust)
end

-- The caller's hold goes on: a full lease, and the lock is put back if the lock had ended.
local function go_on(k, id, lease)
  call('HSET', k[1], owner_of(id), 1)
  call('PEXPIRE', k[1], lease)
end
