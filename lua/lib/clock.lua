-- Redis's own clock, in milliseconds and in microseconds: the only clock that any deadline is compared with. Tests load another in its
-- place.
local function clock()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000), time[1] * 1000000 + time[2]
end
