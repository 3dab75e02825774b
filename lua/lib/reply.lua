-- A script that appends events ends with this. Where they are relayed, its reply has what it appended in front of its
-- first word, or of the number that it is: a table more would cost Redis more than that.
--@if relayed
if appended ~= '' then
  if type(reply) ~= 'table' then return appended .. ms(reply) end
  reply[1] = appended .. reply[1]
end
--@end
return reply
--@if several
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
--@if direct
-- Who waits for a feed's events reads all of them at once, so it is enough to hear of the newest.
for _, feed in ipairs(news) do redis.pcall('SPUBLISH', feed, news[feed]) end
--@end
return replies
--@end
