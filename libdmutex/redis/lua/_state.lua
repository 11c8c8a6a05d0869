-- Step: reads the fields of `state`, with `wanted` as a truth value; is_unsure: the field is absent, so a queue may be
-- there that is older than `state`.
local held, newest, health, wanted, cursor, arrival, depth =
  unpack(call('HMGET', state, 'hold', 'token', 'health', 'wanted', 'cursor', 'arrival', 'depth'))
local is_unsure = not wanted
wanted = wanted and wanted ~= '0'
