-- Step: tells the owner of a marked hold that the queue has its first waiter.  If the message is lost, the owner
-- learns it from the answer to its next renewal.  Reads holder (an id), inbox.
local uuid, attempt = holder:match(id_form)
if attempt then redis.pcall('PUBLISH', inbox .. uuid, 'wanted ' .. attempt) end
