#!lua flags=no-writes
-- Counts the sealed texts in a key, by the name of the payload key that sealed each (core/payload-keys.ts). Marks
-- aren't counted.
-- KEYS: 1 prefix:{tag}:h:tenant:id or prefix:{tag}:schedule:tenant:name or prefix:{tag}:call:tenant:id or
--         prefix:{tag}:decisions:tenant:id or prefix:{tag}:file:tenant:id or prefix:{tag}:task:tenant:id   a hash; or,
--         if it ends with :changes, the changes of an A2A task
-- ARGV: 1 the known names, each between spaces
-- Replies: {'counted', name, …}  a name for each text
--@include sealed
local key, found = KEYS[1], {}

if string.find(key, ':changes$') then
  for _, change in ipairs(redis.call('ZRANGE', key, 0, -1)) do noteTexts(found, change, LAST_WORD) end
else
  local kind, fields = string.match(key, '}:(%l+):'), redis.call('HGETALL', key)
  for at = 1, #fields, 2 do noteField(found, kind, fields[at], fields[at + 1], ARGV[1]) end
end
return { 'counted', unpack(found) }
