-- Step: offers the lock to the waiter `id` of `queue` and `waiter`, and takes it out of there if it becomes the
-- owner: it was heard from recently and its inbox is open, or it is_me, the caller, which learns it by the answer.
-- Reads uuid and attempt (of id), the waiter's words (request, lease, robust, heard, seen, label), now, all that _grant
-- reads, inbox, origin, dead (1: the owner learns of a death), is_last (nobody else is in the queue), and is_lone
-- (the waiter is in `state`, where _grant overwrites `wanted`).  Sets is_owner.
local is_told, is_owner = not is_me, is_me
--@include _silent
if is_told and not is_silent then
  local channel, server = inbox .. uuid, origin:sub(-16)
  local message =
    'granted ' .. attempt .. ' ' .. request .. ' ' .. token_text .. ' ' .. lease .. ' ' .. dead .. ' ' .. server
  --@include _publish
  is_owner = is_heard
end
if is_owner then
  local granted = id .. ' ' .. lease .. ' ' .. label
  --@include _grant
  if is_last then
    call('DEL', queue, waiter)
  elseif not is_lone then
    call('HDEL', waiter, id)
    call('ZREM', queue, id)
  end
end
