-- Has field x attempts left behind the one that it is of?
local function hasAttemptsLeft(extra)
  local most = extra and string.match(extra, ' m(%d+)')
  return most and tonumber(string.match(extra, ' n(%d+)') or 1) < tonumber(most)
end
