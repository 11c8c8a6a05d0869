-- Step: reads held, the field `hold`.  Sets held to false if the hold has ended, which a minus sign shows.
if held and held:byte() == 45 then held = false end
