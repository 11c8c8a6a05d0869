-- Step: the usual handoff, to `id`, the head of `queue` and `waiter`: nobody died, the head has been heard of, and
-- takes the lock by a token of the clock.  Reads lock, state, newest, depth, is_free, wanted, signal, is_last, inbox,
-- born, server.  Sets handed_over; if false, nothing was written.
local request, lease, robust, heard, seen, label = (call('HGET', waiter, id) or ''):match(words_form)
--@include _clock
--@include _birth
local last, token, handed_over = tonumber(newest or 0), now - epoch_us, false
local uuid, attempt = id:match(id_form)
if request and attempt and last and last < token and tonumber(seen) < token and now - born >= lease * 1000 then
  local is_me, dead, token_text = false, '0', seconds - epoch_s .. micros
  label = signal .. label
  --@include _offer
  handed_over = is_owner
end
