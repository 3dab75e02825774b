-- Is the call's own deadline over? Who asked has been told that it did not happen by now, so it must not.
local function late(deadline, now)
  return now > tonumber(deadline)
end
