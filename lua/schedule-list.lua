#!lua flags=no-writes
-- Lists a tenant's schedules by name, without their handoffs.
-- KEYS: 1 prefix:{tag}:schedules:tenant   their names
-- ARGV: 1 what their keys begin with: prefix:{tag}:schedule:tenant:  2 the last name listed; empty for the start
--       3 how many at most
-- Replies: {'listed', now, more, {name, says, next, last}, …}  more: 1 if there are others, else 0; the fields as
--                                                             schedule-put.lua has them
--@include inbox
local names, prefix, last, limit = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3])
local found = redis.call('ZRANGE', names, last == '' and '-' or '(' .. last, '+', 'BYLEX', 'LIMIT', 0, limit + 1)
local items = {}
for at = 1, math.min(#found, limit) do
  local name = found[at]
  local says, next, newest = unpack(redis.call('HMGET', prefix .. name, 'says', 'next', 'last'))
  if says then items[#items + 1] = { name, says, next, newest or '' } else isHere(names, prefix .. name) end
end
return { 'listed', (clock()), #found > limit and 1 or 0, unpack(items) }
