#!lua flags=allow-oom
-- Lists the files of a partition that the sweep is to look at now. Tenants that have none, or none yet, leave its way.
-- KEYS: 1 prefix:{tag}:files   the tenants with files here, by when
-- ARGV: 1 the call's deadline (ms)  2 how many of each tenant at most  3 what the keys of the partition begin with
-- Replies: {'due', now, …}   each: the tenant, id:bytes, and what its record has, as in file-get; of 16
--                    tenants at most
--@include late files
local tenants, count, beginning = KEYS[1], ARGV[2], ARGV[3]
local due, early = { 'due', now }, {}
for _, tenant in ipairs(redis.call('ZRANGE', tenants, '-inf', ms(now), 'BYSCORE', 'LIMIT', 0, 16)) do
  local of = beginning .. 'files:' .. tenant
  -- While the slot moves, it may be on the other node.
  redis.call('EXISTS', tenants, of)
  local members = redis.call('ZRANGE', of, '-inf', ms(now), 'BYSCORE', 'LIMIT', 0, count)
  for _, member in ipairs(members) do
    local file = beginning .. 'file:' .. tenant .. ':' .. string.match(member, '^[^:]+')
    due[#due + 1] = { tenant, member, fieldsOfFile(file) }
  end
  if #members == 0 then
    local _, first = unpack(redis.call('ZRANGE', of, 0, 0, 'WITHSCORES'))
    early[#early + 1] = { tenant, first or '' }
  end
end
for _, of in ipairs(early) do
  local tenant, first = unpack(of)
  if first == '' then redis.call('ZREM', tenants, tenant) else redis.call('ZADD', tenants, first, tenant) end
end
return due
