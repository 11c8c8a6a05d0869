-- Step: a waiter that was not heard from for a while is passed over but keeps its place: its next poll brings it back.
-- Reads heard, lease, now.  Sets is_silent.
local silence = now - heard
local is_silent = silence > silent_least_ms * 1000 and silence > lease * (silent_thirds * 1000) / 3
