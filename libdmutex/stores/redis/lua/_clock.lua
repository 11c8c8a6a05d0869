-- Step: reads the server's clock, in us.  Sets now_text, and token_text, the token for this time.  Both are texts: the
-- usual cases compare and write them, and need no numbers.
local clock = call('TIME')
local seconds, micros = clock[1], clock[2]
if #micros < 6 then micros = ('000000'):sub(#micros + 1) .. micros end
local now_text = seconds .. micros
local token_text = ('%d'):format(now_text - epoch_us)
