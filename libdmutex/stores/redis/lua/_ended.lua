-- Step: reads held, the field `hold`.  A hold that has ended, which a minus sign says, is none: held is false then.
if held and held:byte() == 45 then held = false end
