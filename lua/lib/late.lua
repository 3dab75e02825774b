-- Is the call's own deadline over? By then its caller has been told that the operation did not happen, so it must not happen.
local function late(deadline, now)
  return now > tonumber(deadline)
end
