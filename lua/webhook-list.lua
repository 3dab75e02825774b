#!lua flags=no-writes
-- Reads a tenant's webhooks, the oldest first, and when the first delivery of each is due.
-- KEYS: 1 prefix:{tag}:hooks:tenant   which they are
-- ARGV: 1 what their keys begin with: prefix:{tag}:hook:tenant:
-- Replies: {'listed', now, id, fields, first, …}  of each webhook the fields as webhook-create.lua has them, and when
--                        the first of what is pending is due (ms), or empty
--@include inbox
local webhooks, prefix = KEYS[1], ARGV[1]
local found = { 'listed', (clock()) }
for _, id in ipairs(redis.call('ZRANGE', webhooks, 0, -1)) do
  local fields = redis.call('HGETALL', prefix .. id)
  if #fields == 0 then isHere(webhooks, prefix .. id) end
  local first = redis.call('ZRANGE', prefix .. id .. ':due', 0, 0, 'WITHSCORES')
  found[#found + 1], found[#found + 2], found[#found + 3] = id, fields, first[2] or ''
end
return found
