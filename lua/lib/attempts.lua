-- The number of an attempt that has others left after it, by field x; nil if it is the last or the only one.
local function attemptBeforeOthers(extra)
  local most = extra and string.match(extra, ' m(%d+)')
  local number = most and tonumber(string.match(extra, ' n(%d+)') or 1)
  return most and number < tonumber(most) and number or nil
end
