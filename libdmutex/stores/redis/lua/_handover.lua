-- Step: the usual handoff, to `first`, the first waiter, "<id> <words>": nobody died, the waiter was heard from
-- recently, and it takes the lock with a token of the clock.  Reads first, queue, waiter, lock, state, newest, is_free,
-- wanted, signal, is_last, is_lone, inbox, origin.  Sets handed_over; if false, nothing was written.
local id, uuid, attempt, request, lease, robust, heard, seen, label = first:match(first_form)
--@include _clock
--@include _origin
--@include _newest
local now, handed_over = now_text + 0, false
if id and is_newest and (born == '0' or now - born >= lease * 1000) then
  local is_me, is_timed, dead = false, true, '0'
  label = signal .. label
  --@include _offer
  handed_over = is_owner
end
