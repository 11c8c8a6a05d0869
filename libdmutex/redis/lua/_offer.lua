-- Step: offers the lock to the waiter `id` of `queue` and `waiter`, and takes the waiter out of there if it becomes the
-- owner: it was heard of lately and its inbox is there, or it is_me, the caller, which the answer tells.
-- Reads the waiter's words (request, lease, robust, heard, seen, label), what _grant reads, born, inbox, server, and
-- dead (1: the owner learns of a death).  Sets is_owner.
local is_told = not is_me
local is_owner = is_me or not is_silent(heard, lease, now) and
  tell(inbox, id, 'granted ' .. id:match('%d+$') .. ' ' .. request .. ' ' .. string.format('%.0f', token) .. ' ' ..
    lease .. ' ' .. dead .. ' ' .. server)
if is_owner then
  local granted = id .. ' ' .. lease .. ' ' .. label
  --@include _grant
  call('HDEL', waiter, id)
  call('ZREM', queue, id)
end
