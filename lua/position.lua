#!lua flags=no-writes
-- Says how many handoffs can be caught from an inbox before one of them, of its group; and how many of its group are
-- caught, and may be (lib/groups.lua).
-- KEYS: 1 prefix:{tag}:i:tenant:inbox   the handoffs that can be caught from the inbox, by position (lib/inbox.lua)
-- ARGV: 1 tenant:id of the handoff  2 its group; empty for none
-- Replies: {'ahead', count, caught, max}   count: nil if it isn't there; max: 0 for any number, or without a group
--@include groups
local inbox, member, group = KEYS[1], ARGV[1], ARGV[2]
local caught, limit, position, count = 0, 0, nil, false

if group ~= '' then
  position, caught = redis.call('ZSCORE', inbox .. ':grouped', member), countOf(inbox .. ':caught-groups', group)
  limit = perGroupIn(inbox)
  local first = rangeOf(group)
  count = position and redis.call('ZLEXCOUNT', inbox .. ':groups', first, '(' .. groupEntry(group, position, member))
end
if not position then
  position = redis.call('ZSCORE', inbox, member)
  count = position and redis.call('ZCOUNT', inbox, '-inf', '(' .. position)
  -- Few have the same position: they are in the order of their names.
  local same = position and redis.call('ZRANGE', inbox, position, position, 'BYSCORE', 'LIMIT', 0, 100) or {}
  for _, other in ipairs(same) do
    if other == member then break end
    count = count + 1
  end
end
return { 'ahead', count, caught, limit }
