#!lua flags=allow-oom
-- A mutex object is destroyed.
-- KEYS  lock state queue waiter
-- ARGV  1 delete (anonymous: all keys go) | clean (a name that is not recoverable is usable again)
--       2 what precedes the uuid in the name of an inbox
-- Answer 1 done, 0 somebody holds it or waits for it
--@include _own
--@include _state
--@include _tell
--@include _serve
local k = KEYS
check_queue(k)
local s = read(k[2])
local now = clock()
-- An anonymous mutex is not kept by the dead: a killed process may have been granted the lock before the
-- server saw its end, and has no inbox since.
local function is_alive(id) return ARGV[1] ~= 'delete' or is_there(ARGV[2], id) end
if call('HLEN', k[1]) > 0 and is_alive(s.id or '') then return 0 end
for _, id in ipairs(call('ZRANGE', k[3], 0, 15)) do
  local w = entry(k, id)
  if w and not is_gone(w, now) and is_alive(id) then return 0 end
end
if ARGV[1] == 'delete' then
  call('DEL', k[1], k[2], k[3], k[4])
elseif call('HGET', k[2], 'health') == '2' then
  call('HDEL', k[2], 'health')
end
return 1
