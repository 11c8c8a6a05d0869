-- Step: reads the server's clock in us, as a number and as text.
local clock = call('TIME')
local now, now_text = clock[1] * 1000000 + clock[2], clock[1] .. ('000000'):sub(#clock[2] + 1) .. clock[2]
