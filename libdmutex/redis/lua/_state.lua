-- Step: reads the fields of `state`, with `wanted` as a truth value.
local held, newest, health, wanted, cursor, arrival, depth =
  unpack(call('HMGET', state, 'hold', 'token', 'health', 'wanted', 'cursor', 'arrival', 'depth'))
wanted = wanted and wanted ~= '0'
