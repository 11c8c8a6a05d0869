#!lua flags=allow-oom
-- register_swap.lua for a server whose memory is full: it has refused the usual script, before any command of it.
--@unguarded
--@include _register
local is_full = true
--@include _register_swap
