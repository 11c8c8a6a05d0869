#!lua flags=allow-oom
-- A condition object is destroyed.
-- KEYS  cond sleeper
-- ARGV  1 delete (anonymous: the keys go) | look
-- Answer 1 done, 0 some thread waits on the condition, or 256 gone waiters were forgotten: call again
--@include _own
--@include _state
--@include _tell
--@include _serve
local c, now = { [3] = KEYS[1], [4] = KEYS[2] }, clock()
check_queue(c)
for _, id in ipairs(call('ZRANGE', c[3], 0, 255)) do
  local w = entry(c, id)
  if w and not is_gone(w, now) then return 0 end
  forget(c, id)
end
if call('ZCARD', c[3]) > 0 then return 0 end
if ARGV[1] == 'delete' then call('DEL', c[3], c[4]) end
return 1
