-- Step: sets is_newest if the present token is above the last token, newest, and above the highest that the new owner
-- has seen, or nil.  Texts of digits compare as their numbers do if they are equally long.
local length = #token_text
local is_newest = seen and (not newest or #newest == length and newest < token_text) and
  (seen == newest or seen == '0' or #seen == length and seen < token_text)
