-- Step: both keys of a queue live two and a half to three leases on; is_first: they are new.
if is_first or call('PTTL', queue) < lease * 2.5 then
  local life = lease * 3 .. ''
  call('PEXPIRE', queue, life)
  call('PEXPIRE', waiter, life)
end
