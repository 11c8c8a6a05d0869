-- Definitions that every script reads first, and the only place where a lock gets an owner.
--
-- k: the four keys of a name (lock, state, queue, waiter).  s: the contents of `state`.  now: server us.
-- id: <uuid>:<thread>:<attempt>, an attempt of a thread.
-- hold, in `state`: "<id> <lease ms> <label>" of the hold that was not given back.
local call = redis.call

--@include _epoch
-- Tokens are below 2^52, and the next token must be below, too; a larger token would make the name unusable for all.
local function is_token(number) return number and number >= 0 and number < 4503599627370495 end

-- Numbers go to the server as whole digits: Lua's own text of a large number has an exponent.
local function text(number) return string.format('%.0f', number) end

-- The server's clock in us, as a number and as text.
local function clock()
  local t = call('TIME')
  return t[1] * 1000000 + t[2], t[1] .. ('000000'):sub(#t[2] + 1) .. t[2]
end

local function next_token(s, seen, now) return math.max(s.last + 1, seen + 1, now - epoch_us) end

-- `state` outlives the lock by a week.  The usual ways put the end off once a day, by the days of their tokens, which
-- are the clock's days; a token that goes on from a larger token tells no day.
local function expire_state(k) call('PEXPIRE', k[2], 604800000) end

local function give_token(k, hold, token_text)
  call('HSET', k[2], 'hold', hold, 'token', token_text)
  expire_state(k)
end
