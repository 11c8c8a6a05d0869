-- Step: both keys of a queue live two and a half to three leases on; is_first: they are new.
if is_first or call('PTTL', queue) < lease * queue_least_leases then
  local life = lease * queue_leases .. ''
  call('PEXPIRE', queue, life)
  call('PEXPIRE', waiter, life)
end
