-- Step: keeps both keys of a queue for the next two and a half to three leases; is_first: they are new.
if is_first or call('PTTL', queue) < lease * queue_least_leases then
  local life = lease * queue_leases .. ''
  call('PEXPIRE', queue, life)
  call('PEXPIRE', waiter, life)
end
