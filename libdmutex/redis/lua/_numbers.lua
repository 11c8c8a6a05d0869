-- The numbers and forms of the protocol; the scripts name no others.
-- Tokens are the microseconds since 2020-01-01T00:00:00Z, because 4096 times a token is to fit a signed number of 64
-- bits, until 2091.  All other times here are the server's clock, in microseconds since 1970.
local epoch_us, epoch_s = 1577836800000000, 1577836800
-- Tokens are below 2^52, and the next token must be below, too; a larger token would make the name unusable for all.
local token_limit = 4503599627370495
local unknown_origin = '0 0000000000000000'
local state_ms, carrier_ms = 604800000, 10800000 -- the lives of `state`, and of a queue with a carrier of a signal
local queue_limit = 10000 -- waiters of a queue
local look_limit, signal_limit, drop_limit = 16, 256, 1024 -- waiters that a look, a signal, a drop look at
-- id: "<uuid>:<thread>:<attempt>"; the form finds the uuid and the attempt.
local id_form = '^([^:]*).*:(%d+)$'
-- hold, in `state`: "<id> <lease ms> <signal><mark><label>" of the hold that was not released.
local hold_form = '^(%S+) (%d+) (.*)$'
-- The beginning of `hold`: id, lease, and not '' if a signal or a mark follows.
local holder_form = '^(%S+) (%d+) ([@+-]?)'
-- A waiter's words: "<request> <lease> <robust> <heard, server us> <token seen> <signal><label>".
local words_form = '^(%d+) (%d+) (%d) (%d+) (%d+) (.*)$'
-- A waiter's id and words in one text; the usual handoff's form finds in it: id, uuid, attempt, and the words.  It
-- knows the ids that this library makes; a class takes less time than a set such as [^:].
local lone_form = '^(%S+) (.*)$'
local first_form = '^((%w+):%d+:(%d+)) (%d+) (%d+) (%d) (%d+) (%d+) (.*)$'
-- "@<key of the condition> " of a waiter that a signal brought to the mutex, or nothing; it goes into `hold`, too.
local signal_form = '^@%S+ '
-- The mark of a hold, which a renewal writes: "+ " tell the holder of the first waiter; "- " likewise, and the end of
-- the lease is no death.  A label begins with a digit, so a label is never taken for a mark.
local mark_form = '^[+-] '
