-- Step: tells the owner of a marked hold that the queue has its first waiter.  The owner hears of a lost message by the
-- answer to the next renewal.  Reads holder (an id), inbox.
redis.pcall('PUBLISH', inbox .. holder:match('^[^:]*'), 'wanted ' .. holder:match('%d+$'))
