-- Step: writes the words of the waiter `id`, which ZADD has just put into `queue`; is_first: into an empty one.  Both
-- keys of the queue live for the next two and a half to three leases.  Reads queue, waiter, id, words, lease.
local written = redis.pcall('HSET', waiter, id, words)
if type(written) == 'table' then -- a key of a wrong type: all stays as it was
  call('ZREM', queue, id)
  error(written)
end
--@include _keep
