-- The usual handoff, written out: a third of the time that serve() would take.  Nobody died, and the head of the queue
-- was heard of lately, and hears: the head is the owner.
-- k: lock and state of the mutex, queue and waiter of the queue that the head waits in.  mark: the text before the
-- head's label in `hold`.  server: the server that runs this script.  Returns true if the handoff was done.
local function hand_over(k, head, inbox, born, server, mark)
  local last, health, cursor = unpack(call('HMGET', k[2], 'token', 'health', 'cursor'))
  if not last or health or cursor then return false end
  local said = call('HGET', k[4], head) or ''
  local request, lease, heard, seen, label = said:match('^(%d+) (%d+) %d (%d+) (%d+) (.*)$')
  local owner, attempt = head:match('^(.*):(%d+)$')
  if not (request and owner) then return false end
  local t = call('TIME')
  local now = t[1] * 1000000 + t[2]
  local token = now - epoch_us
  local token_text = string.format('%.0f', token)
  if tonumber(last) >= token or tonumber(seen) >= token then return false end -- the clock makes no token that is new to all
  if now - heard > math.max(lease * 2 / 3, 1000) * 1000 then return false end
  if born ~= '0' and now - born < lease * 1000 then return false end
  if not tell(inbox, head, 'granted ' .. attempt .. ' ' .. request .. ' ' .. token_text .. ' ' .. lease .. ' 0 ' .. server) then
    return false
  end
  call('DEL', k[1])
  call('HSET', k[1], owner, 1)
  call('PEXPIRE', k[1], lease)
  call('HSET', k[2], 'hold', head .. ' ' .. lease .. ' ' .. mark .. label, 'token', token_text, 'told', token_text)
  if math.floor(last / 86400000000) ~= math.floor(token / 86400000000) then call('PEXPIRE', k[2], 604800000) end
  call('ZREM', k[3], head)
  call('HDEL', k[4], head)
  return true
end
