#!lua flags=no-writes
-- Reads a tenant's webhooks, the oldest first.
-- KEYS: 1 prefix:{tag}:hooks:tenant   which they are
-- ARGV: 1 what their keys begin with: prefix:{tag}:hook:tenant:
-- Replies: {'listed', now, id, fields, …}   the time (ms), and the fields of a webhook as webhook-create.lua has them
-- Uses: here
local webhooks, prefix = KEYS[1], ARGV[1]
local found = { 'listed', (clock()) }
for _, id in ipairs(redis.call('ZRANGE', webhooks, 0, -1)) do
  local fields = redis.call('HGETALL', prefix .. id)
  if #fields == 0 then isHere(webhooks, prefix .. id) end
  found[#found + 1], found[#found + 2] = id, fields
end
return found
