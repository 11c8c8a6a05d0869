-- Step: tells the owner of a marked hold that the queue has its first waiter.  The owner hears of a lost message by the
-- answer to the next renewal.  Reads holder (an id), inbox.
local uuid, attempt = holder:match(id_form)
if attempt then redis.pcall('PUBLISH', inbox .. uuid, 'wanted ' .. attempt) end
