-- Step, before all others on a node of a Cluster, and on no other server: ends the script, before anything is written
-- or published, if a command on a missing key would fail.  While a slot moves from node to node, a missing key may be
-- on the other node, so each command on a missing key fails, in the middle of the script: a release would send a
-- message to the next owner, but not write it down.  `none` is a key of the group that is always missing.
if type(redis.pcall('EXISTS', KEYS[1]:match('^.-}') .. ':none')) ~= 'number' then
  return redis.error_reply('TRYAGAIN the slot of ' .. KEYS[1] .. ' is moving to another node')
end
