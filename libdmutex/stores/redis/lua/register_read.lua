#!lua flags=no-writes
-- Reads a register.
--@unguarded
-- KEYS  the register, the epoch
-- ARGV  the epoch's id, the version that the caller knows, or ''
-- Answer {'value', us, age in ms or '', version or '', the value after it}; {'same', us, age} if the version is the
--        known one; 'other' for another epoch
--@include _register
local version, written = unpack(call('HMGET', key, 'version', 'written'))
local age = age_of(written)
if version and version == ARGV[2] then return { 'same', now, age } end
return { 'value', now, age, version or '', version and call('HGET', key, 'data') or '' }
