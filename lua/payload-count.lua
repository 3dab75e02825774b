#!lua flags=no-writes
-- Counts the sealed texts in a key, by the name of the payload key that sealed each (core/payload-keys.ts). Marks
-- aren't counted: they are shorter. A text that isn't sealed may contain what looks like one, so inside of a value only
-- names count that are known.
-- KEYS: 1 prefix:{tag}:h:tenant:id or prefix:{tag}:schedule:tenant:name or prefix:{tag}:call:tenant:id or
--         prefix:{tag}:decisions:tenant:id or prefix:{tag}:task:tenant:id   a hash; or, if it ends with :changes, the
--         changes of an A2A task
-- ARGV: 1 the known names, each between spaces
-- Replies: {'counted', name, …}  a name for each text
local key, found, values = KEYS[1], {}, nil
if string.find(key, ':changes$') then
  values = redis.call('ZRANGE', key, 0, -1)
else
  values = redis.call('HGETALL', key)
end
for _, value in ipairs(values) do
  local first = string.byte(value)
  if first == 1 or first == 2 then
    found[#found + 1] = string.sub(value, 2, 9)
  else
    for at, word in string.gmatch(value, '()~([%w_-]+)') do
      local name = string.sub(word, 1, 8)
      local isKnown = at == 1 or string.find(ARGV[1], ' ' .. name .. ' ', 1, true)
      if #word > 50 and isKnown then found[#found + 1] = name end
    end
  end
end
return { 'counted', unpack(found) }
