-- Step, and the only place where a lock gets a new owner; renew.lua only puts back an earlier owner.  If the previous
-- owner's lock is still there, it becomes the new owner's.  Reads lock, state, granted (the hold), token_text, is_timed
-- (the token is of the clock), lease, newest (the last token), is_free (there is no lock), and is_told: a message
-- grants, to a waiter, which drop.lua checks; then wanted, too: the new value of the field, or nil if the value stays.
if is_free or call('PEXPIRE', lock, lease) == 0 then
  call('HSET', lock, 'held', '1')
  call('PEXPIRE', lock, lease)
end
if not is_told then
  call('HSET', state, 'hold', granted, 'token', token_text)
elseif wanted then
  call('HSET', state, 'hold', granted, 'token', token_text, 'told', token_text, 'wanted', wanted)
else
  call('HSET', state, 'hold', granted, 'token', token_text, 'told', token_text)
end
-- The end of `state` is put off once in 28 hours, 10^11 us: the twelfth digit of the clock's tokens shows when.
if not (is_timed and newest and newest:byte(-12) == token_text:byte(-12)) then
  call('PEXPIRE', state, state_ms)
end
