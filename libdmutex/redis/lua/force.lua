#!lua flags=allow-oom
-- Breaks anybody's lock: the next owner has a higher token and, if robust, learns of a death.
-- KEYS  lock state queue waiter
-- ARGV  1 inbox prefix, 2 the server's run id
-- Answer {broken, more} {free}
--@include _own
--@include _state
--@include _tell
--@include _serve
local k, s = KEYS, read(KEYS[2])
check_queue(k)
local is_held = call('HLEN', k[1]) > 0
if not (is_held or s.hold) then return { 'free' } end
if s.id then tell(ARGV[1], s.id, 'lost ' .. attempt_of(s.id)) end
if s.hold then owe_signal(k, s.label) end
give_up(k, s, 1)
s.last = s.last + 1
call('HSET', k[2], 'token', text(s.last))
expire_state(k)
local _, _, _, more = serve(k, s, ARGV[1], (clock()), 0, ARGV[2])
return { 'broken', more == true and 1 or 0 }
