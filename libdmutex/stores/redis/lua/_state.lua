-- Step: reads `wanted`, as HMGET gave it.  Sets `wanted` as a truth value: others may wait; lone: the only waiter,
-- which is in this field and in no queue, "<id> <words>"; is_unsure: the field is absent, so there may be a
-- queue that is older than `state`.
local is_unsure, lone = not wanted, wanted and #wanted > 1 and wanted
wanted = wanted and wanted ~= '0'
