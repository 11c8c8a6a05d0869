-- Step: compares and swaps, after _register.lua.  Sets nothing; ends the script.  is_full: the server's memory is full,
-- and so a value may grow by the digits of its numbers, and no more; a release or a beat is such a swap.
local old = call('HGET', key, 'version') or ''
if old ~= ARGV[2] then
  local data, written = unpack(call('HMGET', key, 'data', 'written'))
  return { 'conflict', now, age_of(written), old, data or '' }
end
if ARGV[3] == '' then
  call('DEL', key)
elseif is_full and #ARGV[4] > #(call('HGET', key, 'data') or '') + 16 then
  return redis.error_reply('OOM no memory for a longer value')
else
  call('HSET', key, 'version', ARGV[3], 'data', ARGV[4], 'written', now .. ' ' .. epoch)
end
for i = 5, #ARGV, 2 do redis.pcall('PUBLISH', ARGV[i], ARGV[i + 1]) end
return 'done ' .. now
