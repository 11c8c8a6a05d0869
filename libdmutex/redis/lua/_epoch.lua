-- Tokens are the microseconds since 2020-01-01T00:00:00Z, because 4096 times a token is to fit a signed number of 64
-- bits, until 2091.  All other times here are the server's clock, in microseconds since 1970.
local epoch_us = 1577836800000000
