-- Step: `born`, since when the server is there.  A negative number is of a server of a quorum: a server that has lost
-- its mark (born.lua) has lost all locks while it ran, and is new from now on.
born = (born or 0) + 0
if born < 0 and KEYS[1] then
  local mark = KEYS[1]:match('^(.-):{') .. ':server'
  born = call('HGET', mark, 'since')
  if not born then
    born = now_text
    redis.pcall('HSET', mark, 'since', born) -- fails in a script that only reads
  end
end
