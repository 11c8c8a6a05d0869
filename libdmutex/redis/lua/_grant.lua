-- Step, and the only place where a lock gets an owner.  The lock of the owner before, if it is there still, is the new
-- owner's then.  Reads lock, state, granted (the hold), token, token_text, lease, now, last, depth, is_free (no lock
-- is there), is_told: a message grants, to a waiter, which drop.lua looks at; then wanted, too: the new value of the
-- field, or nil if the value stays.
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
if depth then call('HDEL', state, 'depth') end
-- The end of `state` is put off once a day: a token that the clock makes tells the day.
if token ~= now - epoch_us or last - last % day_us ~= token - token % day_us then
  call('PEXPIRE', state, state_ms)
end
