#!lua flags=allow-oom
-- A mutex object is destroyed.
-- KEYS  lock state queue waiter
-- ARGV  1 delete (anonymous: all keys go) | clean (a name that is not recoverable is usable again)
-- Answer 1 done, 0 somebody holds it or waits for it
--@include _own
--@include _state
--@include _tell
--@include _serve
local k = KEYS
check_queue(k)
if call('HLEN', k[1]) > 0 then return 0 end
local now = clock()
for _, id in ipairs(call('ZRANGE', k[3], 0, 15)) do
  local w = entry(k, id)
  if w and not is_gone(w, now) then return 0 end
end
if ARGV[1] == 'delete' then
  call('DEL', k[1], k[2], k[3], k[4])
elseif call('HGET', k[2], 'health') == '2' then
  call('HDEL', k[2], 'health')
end
return 1
