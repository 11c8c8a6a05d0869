#!lua flags=allow-oom
-- A condition object is destroyed.
-- KEYS  cond sleeper
-- ARGV  delete (anonymous: the keys go) | look
-- Answer 1 done, 0 some thread waits on the condition, or 256 gone waiters were forgotten: call again
local call = redis.call
--@include _numbers
--@include _base
--@include _queue
local what = ARGV[1]
local c, at = condition_at(1), circumstances()
check_queue(c)
for _, id in ipairs(call('ZRANGE', c.queue, 0, signal_limit - 1)) do
  local w = entry(c, id)
  if w and not is_gone(w, at) then return 0 end
  forget(c, id)
end
if call('ZCARD', c.queue) > 0 then return 0 end
if what == 'delete' then call('DEL', c.queue, c.waiter) end
return 1
