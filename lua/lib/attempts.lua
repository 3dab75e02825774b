-- Does field x say that there are attempts left after this one?
local function hasAttemptsLeft(extra)
  local most = extra and string.match(extra, ' m(%d+)')
  return most and tonumber(string.match(extra, ' n(%d+)') or 1) < tonumber(most)
end
