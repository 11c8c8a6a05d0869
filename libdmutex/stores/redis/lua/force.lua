#!lua flags=allow-oom
-- Breaks anybody's lock: the next owner gets a higher token and, if robust, learns of a death.
-- KEYS  lock state queue waiter
-- ARGV  inbox prefix, origin (_origin.lua)
-- Answer {broken, more} {free}
local call = redis.call
--@include _numbers
--@include _base
--@include _queue
--@include _tell
--@include _serve
local inbox, origin = unpack(ARGV)
local k, at = mutex_at(1), circumstances(inbox, origin)
local s = read(k)
gather(k, s, at)
local is_held = call('HLEN', k.lock) > 0
if not (is_held or s.hold) then return { 'free' } end
if s.id then tell(inbox, s.id, 'lost ' .. attempt_of(s.id)) end
if s.hold then owe_signal(k, s.label) end
if is_held then end_hold(k, s, how_broken, held_ms(s, at)) else end_hold(k, s, 1, lapsed_ms(k, s, at)) end
if is_followed(s.last) then s.last = s.last + 1 end
call('HSET', k.state, 'token', text(s.last))
expire_state(k)
local _, _, _, more = serve(k, s, at)
return { 'broken', more == true and 1 or 0 }
