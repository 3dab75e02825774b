-- What a pass has that isn't plain, from its options (lib/record.lua, "word of pass"): field x, when it can be caught,
-- the schema, field b, whether something blocks it, by how many others it says so, and the payload alone.
local function readOptions(options, payload, now, formatted)
  local extra, delay = string.gsub(options, ' [afhlzA]%S+', ''), string.match(options, ' a(%d+)')
  local available, schema, after, blocked, shown
  if delay then
    available = now + delay
    extra = extra .. ' a' .. ms(available)
  end
  local need, open, waits_for, size = string.match(options, ' A(%l)/(%d+)/(%d+)/(%d+)')
  if need then
    after, payload = string.sub(payload, -size), string.sub(payload, 1, -size - 1)
    blocked, shown = open ~= '0', waits_for ~= '0' and tonumber(waits_for) or nil
    extra = extra .. ' A' .. need .. '/' .. open .. '/' .. waits_for .. (blocked and '' or '/' .. formatted)
  end
  local length = string.match(options, ' z(%d+)')
  if length then schema, payload = string.sub(payload, -length), string.sub(payload, 1, -length - 1) end
  return extra, available, schema, after, blocked, shown, payload
end
