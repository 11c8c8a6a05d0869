-- Step: a waiter that was not heard of for a while is passed over and keeps the place: the next poll brings the waiter
-- back.  Reads heard, lease, now.  Sets is_silent.
local silence = now - heard
local is_silent = silence > silent_least_ms * 1000 and silence > lease * (silent_thirds * 1000) / 3
