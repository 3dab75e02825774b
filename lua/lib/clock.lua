-- Redis's own clock, in milliseconds and in microseconds. All deadlines are compared with this clock only. Tests replace it.
local function clock()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000), time[1] * 1000000 + time[2]
end
