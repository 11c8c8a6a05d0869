-- Step: the usual handoff, to `first`, the first waiter, "<id> <words>": nobody died, the waiter has been heard of, and
-- takes the lock by a token of the clock.  Reads first, queue, waiter, lock, state, newest, depth, is_free, wanted,
-- signal, is_last, is_lone, inbox, born, server.  Sets handed_over; if false, nothing was written.
local id, uuid, attempt, request, lease, robust, heard, seen, label = first:match(first_form)
--@include _clock
--@include _birth
local last, token, handed_over = tonumber(newest or 0), now - epoch_us, false
if id and last and last < token and seen + 0 < token and now - born >= lease * 1000 then
  local is_me, dead, token_text = false, '0', ('%d'):format(seconds - epoch_s) .. micros
  label = signal .. label
  --@include _offer
  handed_over = is_owner
end
