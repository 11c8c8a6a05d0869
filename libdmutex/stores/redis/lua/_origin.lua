-- Step: reads `origin`, "<since when the server is there, us> <the server's run id>".  Sets born, the first word.  A
-- negative number is that of a server of a quorum: if the server has lost its mark (born.lua), it has lost all locks
-- while it ran, and is new from now on.
local born = origin:sub(1, -18)
if born:byte() == 45 then -- '-'
  local mark = KEYS[1]:match(prefix_form) .. ':server'
  born = call('HGET', mark, 'since')
  if not born then
    born = now_text
    redis.pcall('HSET', mark, 'since', born) -- fails in a script that only reads
  end
end
