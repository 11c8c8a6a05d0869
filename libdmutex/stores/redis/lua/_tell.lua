-- True if the inbox of the process of `id` is open.  nil: an error (no right to ask).
local function is_there(inbox, id)
  local subscribers = redis.pcall('PUBSUB', 'NUMSUB', inbox .. id:match(uuid_form))[2]
  return subscribers and subscribers ~= 0
end

-- Sends a message to the inbox of the process of `id`.  Returns true if it is open.
local function tell(inbox, id, message)
  local channel = inbox .. id:match(uuid_form)
  --@include _publish
  return is_heard
end
