-- A signal that dies with its receiver is owed to the next waiter of the condition, whose poll pays the debt, because
-- the scripts of a mutex do not know the keys of conditions.  words: a label with the signal before it.
local function owe_signal(k, words)
  local condition = words:match(signal_key_form)
  if not condition then return end
  local field = 'debt ' .. condition
  call('HSET', k.state, field, (call('HGET', k.state, field) or 0) + 1)
  if call('PTTL', k.state) == -1 then expire_state(k) end
end
