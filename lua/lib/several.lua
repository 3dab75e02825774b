-- Runs a script once for several calls that were sent together: one command instead of many, whose libraries are made
-- once. Each call has its own keys, arguments, deadline, token and reply, as if it had been sent alone; an error is the
-- reply of its own call. ARGV[1] has two characters for each call: how many of KEYS are its own, and how many of ARGV,
-- counted from '0'. PAYLOAD says where a reply has its payload. The script is the body of `one`; lib/reply.lua
-- ends it, and calls it.
local now, seconds, micros, formatted = clock()
local function clock() return now, seconds, micros, formatted end
-- Redis's clock stands still while a script runs. Handoffs that are passed together get times 10 microseconds apart,
-- less than a pass takes: so they enter an inbox in the order in which they were sent.
local function advance()
  local moment = string.format('%d', (seconds .. micros) + 10)
  seconds, micros, formatted = string.sub(moment, 1, -7), string.sub(moment, -6), string.sub(moment, 1, -4)
  now = formatted + 0
end
local function one(KEYS, ARGV)
--@if relayed
appended = ''
--@end
