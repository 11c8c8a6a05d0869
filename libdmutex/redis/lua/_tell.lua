-- True if the inbox of the process of `id` is there, and the inbox's channel: NUMSUB counts neither pattern subscribers
-- (a monitor) nor subscribers of other servers (a replica's).  nil: an error (no right to ask); nobody is told anything
-- then.
local function is_there(inbox, id)
  local channel = inbox .. id:match('^[^:]*')
  local subscribers = redis.pcall('PUBSUB', 'NUMSUB', channel)[2]
  return subscribers and subscribers ~= 0, channel
end

-- Tells the inbox.  Returns true if the inbox is there: PUBLISH counts a monitor and reaches subscribers of replicas,
-- so the count of PUBLISH does not say that a waiter lives.
local function tell(inbox, id, message)
  local found, channel = is_there(inbox, id)
  if not found then return false end
  return type(redis.pcall('PUBLISH', channel, message)) == 'number'
end

-- A waiter that was not heard of for a while is passed over and keeps the place: the next poll brings the waiter back.
local function is_silent(heard, lease, now) return now - heard > math.max(lease * 2 / 3, 1000) * 1000 end
