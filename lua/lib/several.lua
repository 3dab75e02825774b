-- Runs a script once for several calls that were sent together: one command instead of many, whose libraries are made
-- once. Each call has its own keys, arguments, deadline, token and reply, as if it had been sent alone; an error is the
-- reply of its own call. ARGV[1] has two characters for each call: how many of KEYS are its own, and how many of ARGV,
-- counted from '0'. PAYLOAD is written in front of this library: where a reply has its payload.
local now, seconds, micros, formatted = clock()
local function clock() return now, seconds, micros, formatted end
-- Redis's clock stands still while a script runs. What is passed together gets times that are 10 microseconds apart,
-- which is less than a pass takes: so it enters an inbox in the order in which it was sent.
local function advance()
  local moment = string.format('%d', (seconds .. micros) + 10)
  seconds, micros, formatted = string.sub(moment, 1, -7), string.sub(moment, -6), string.sub(moment, 1, -4)
  now = formatted + 0
end
local function one(KEYS, ARGV)
-- body
end
-- What a catch returns may have a megabyte, and nobody else is served meanwhile: after so many bytes the rest of the
-- calls get no reply, and are sent again.
local replies, shape, key, argument, room = {}, ARGV[1], 0, 1, 262144
for at = 1, #shape, 2 do
  local keys, arguments = string.byte(shape, at, at + 1)
  keys, arguments = key + keys - 48, argument + arguments - 48
  local ok, reply = pcall(one, { unpack(KEYS, key + 1, keys) }, { unpack(ARGV, argument + 1, arguments) })
  key, argument = keys, arguments
  if type(reply) == 'table' then
    local payload = reply[PAYLOAD]
    if type(payload) == 'string' then room = room - #payload end
  elseif not ok then
    -- A command's error has its code in front, one of Lua has none.
    reply = { err = string.find(reply, '^%u+ ') and reply or 'ERR ' .. reply }
  end
  replies[#replies + 1] = reply
  if room <= 0 then break end
end
-- Who waits for a feed's events reads all of them at once, so it is enough to hear of the newest.
for _, feed in ipairs(news) do redis.pcall('SPUBLISH', feed, news[feed]) end
return replies
