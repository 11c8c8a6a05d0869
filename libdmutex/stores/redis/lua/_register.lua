-- Step: begins a script on a register, a hash {version, data, written}; `written` is the server's time in us, a blank,
-- and the epoch.  Ends the script if the data have another epoch (register_epoch.lua).  A missing key may be on another
-- node while a slot moves; the script then ends at its first look at the key, before anything is written.
local call, key, epoch = redis.call, KEYS[1], ARGV[1]
if call('HGET', KEYS[2], 'id') ~= epoch then return 'other' end
local time = call('TIME')
local now = string.format('%.0f', time[1] * 1000000 + time[2])

-- The ms since the value was written.  '': not known; another server has written it, or the clock was set back.
local function age_of(written)
  local us, by = (written or ''):match('^(%d+) (%x+)$')
  return by == epoch and now - us >= 0 and math.floor((now - us) / 1000) or ''
end
