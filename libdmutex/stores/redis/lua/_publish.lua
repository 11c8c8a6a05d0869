-- Step: sends `message` to the inbox `channel` if the inbox is open.  Sets is_heard.  We ask NUMSUB, because it counts
-- neither pattern subscribers (a monitor) nor subscribers of other servers (a replica's); PUBLISH counts and reaches
-- them.  After an error (no right to ask) nothing is sent.
local subscribers = redis.pcall('PUBSUB', 'NUMSUB', channel)[2]
local is_heard = subscribers and subscribers ~= 0 and
  type(redis.pcall('PUBLISH', channel, message)) == 'number'
