-- Tells the inbox of the process that `id` belongs to.  Returns whether the inbox is there: NUMSUB
-- counts neither pattern subscribers (a monitor) nor subscribers of other servers (a replica's).
-- PUBLISH counts the first and reaches the second, so its own count does not say that a waiter lives.
-- An error (no right) means: not there.
local function tell(inbox, id, message)
  local channel = inbox .. id:match('^[^:]*')
  local subscribers = redis.pcall('PUBSUB', 'NUMSUB', channel)[2]
  if not subscribers or subscribers == 0 then return false end
  return type(redis.pcall('PUBLISH', channel, message)) == 'number'
end
