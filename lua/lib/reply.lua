-- The end of a script that appends events. Where events are relayed, they go out in front of the reply's first word, or
-- of its number: one more table would cost Redis more.
--@if relayed
if appended ~= '' then
  if type(reply) ~= 'table' then return appended .. ms(reply) end
  reply[1] = appended .. reply[1]
end
--@end
return reply
--@if several
end
-- A catch's reply may have a megabyte, and Redis serves no other call meanwhile: once the budget of bytes is used up,
-- the rest of the calls get no reply, and are sent again.
local replies, shape, key, argument, budget = {}, ARGV[1], 0, 1, 262144
for at = 1, #shape, 2 do
  local keys, arguments = string.byte(shape, at, at + 1)
  keys, arguments = key + keys - 48, argument + arguments - 48
  local ok, reply = pcall(one, { unpack(KEYS, key + 1, keys) }, { unpack(ARGV, argument + 1, arguments) })
  key, argument = keys, arguments
  if type(reply) == 'table' then
    local payload = reply[PAYLOAD]
    if type(payload) == 'string' then budget = budget - #payload end
  elseif not ok then
    -- A command's error begins with its code; Lua's own errors have none.
    reply = { err = string.find(reply, '^%u+ ') and reply or 'ERR ' .. reply }
  end
  replies[#replies + 1] = reply
  if budget <= 0 then break end
end
--@if direct
-- A reader that waits for a feed's events reads all of them at once, so the message about the newest is enough.
for _, feed in ipairs(news) do redis.pcall('SPUBLISH', feed, news[feed]) end
--@end
return replies
--@end
