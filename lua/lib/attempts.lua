-- The number of an attempt that has others left after it, by field x; nil if it is the last or the only one.
local function attemptBeforeOthers(extra)
  local max = extra and string.match(extra, ' m(%d+)')
  local number = max and tonumber(string.match(extra, ' n(%d+)') or 1)
  return max and number < tonumber(max) and number or nil
end
-- How much longer than the retention a key is kept if the sweep may still have to make a successor of it, in
-- milliseconds. So its payload isn't lost, even if no sweep comes for that long.
local UNSWEPT = 604800000
-- Keeps a caught handoff until its work is over, and then for the retention.
local function keepWork(key, until_done, retention, extra)
  redis.call('PEXPIREAT', key, ms(until_done + retention + (attemptBeforeOthers(extra) and UNSWEPT or 0)))
end
