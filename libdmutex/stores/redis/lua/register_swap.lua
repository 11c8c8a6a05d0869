#!lua
-- Replaces the value of a register if its version is the one that the caller knows.
--@unguarded
-- KEYS  the register, the epoch
-- ARGV  the epoch's id, the version expected ('': absent), the new version ('': delete), the value after its version,
--       and for each notice a channel and a text
-- Answer 'done <us>'; {'conflict', us, age in ms or '', version or '', the value after it}; 'other' for another epoch
--@include _register
local is_full = false
--@include _register_swap
