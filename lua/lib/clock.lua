-- Redis's own clock: milliseconds; seconds and the six digits of the microseconds after them, as texts; and
-- milliseconds as text. The two texts joined are microseconds. All deadlines are compared with this clock only. Tests
-- replace it. The texts are pieces of Redis's reply: formatting a number takes twice as long.
local function clock()
  local time = redis.call('TIME')
  local seconds, micros = time[1], time[2]
  if #micros < 6 then micros = string.rep('0', 6 - #micros) .. micros end
  local formatted = seconds .. string.sub(micros, 1, 3)
  return formatted + 0, seconds, micros, formatted
end
