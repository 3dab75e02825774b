#!lua flags=no-writes
-- Lists the groups of an inbox that have something to be caught, or something caught (lib/groups.lua): first what has
-- none, then by name. A call looks at a limited number of entries, and says whether the list goes on.
-- KEYS: 1 prefix:{tag}:i:tenant:inbox   the inbox (lib/inbox.lua)
-- ARGV: 1 empty for the start; else a dot, and the group to go on behind (empty: what has none)  2 how many at most
-- Replies: {'listed', more, {group, pending, caught, oldest}, …}   more: 1 if there are others, else 0; the group is
--                        empty for what has none; oldest: when the oldest pending one entered (microseconds), nil if
--                        there is none
--@include inbox listing
local inbox, after, limit = KEYS[1], ARGV[1], ARGV[2] + 0
local groups, caught, looks, items = inbox .. ':groups', inbox .. ':caught-groups', 20000, {}
-- While the slot moves, what isn't here may be on the other node.
redis.call('EXISTS', inbox, inbox .. ':caught', groups, caught)

if after == '' then
  local pending = redis.call('ZCARD', inbox)
  -- Version 0.2.0 takes what it ended out of the one set alone.
  local without = math.max(0, redis.call('SCARD', inbox .. ':caught') - redis.call('ZCARD', caught))
  if pending + without > 0 then items[1] = { '', pending, without, oldestIn(inbox) } end
else
  after = string.sub(after, 2)
end
local more = 0
while more == 0 do
  local one, other = groupBehind(groups, after), groupBehind(caught, after)
  local group = (not other or one and isBehind(other, one)) and one or other
  if not group then break end
  if #items >= limit or looks <= 0 then
    more = 1
    break
  end
  local pending = countOf(groups, group)
  items[#items + 1] = { group, pending, countOf(caught, group), oldestIn(inbox, group) }
  looks, after = looks - math.min(pending, 1000), group
end
return { 'listed', more, unpack(items) }
