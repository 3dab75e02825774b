#!lua flags=no-writes
-- Lists the files of a partition that the sweep is to look at now.
-- KEYS: 1 prefix:{tag}:files   the tenants with files here, by when
-- ARGV: 1 how many of each tenant at most  2 what the keys of the partition begin with
-- Replies: {'due', now, …}   each: the tenant, id:bytes, and the fields of its record; of 16 tenants at most
local now = clock()
local count, beginning = ARGV[1], ARGV[2]
local due = { 'due', now }
for _, tenant in ipairs(redis.call('ZRANGE', KEYS[1], '-inf', ms(now), 'BYSCORE', 'LIMIT', 0, 16)) do
  local of = beginning .. 'files:' .. tenant
  for _, member in ipairs(redis.call('ZRANGE', of, '-inf', ms(now), 'BYSCORE', 'LIMIT', 0, count)) do
    local file = beginning .. 'file:' .. tenant .. ':' .. string.match(member, '^[^:]+')
    due[#due + 1] = { tenant, member, redis.call('HGETALL', file) }
  end
end
return due
