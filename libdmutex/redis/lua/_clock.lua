-- Step: reads the server's clock in us, as a number and as text.
local clock = call('TIME')
local seconds, micros = clock[1], clock[2]
if #micros < 6 then micros = ('000000'):sub(#micros + 1) .. micros end
local now_text = seconds .. micros
local now = now_text + 0
