#!lua flags=no-writes
-- Says how many handoffs can be caught from an inbox before one of them.
-- KEYS: 1 prefix:{tag}:i:tenant:inbox   the handoffs that can be caught from the inbox, by position (lib/inbox.lua)
-- ARGV: 1 tenant:id of a handoff in this list
-- Replies: {'ahead', count}
--          {'not_found'}  it isn't in the list
local list, member = KEYS[1], ARGV[1]
local position = redis.call('ZSCORE', list, member)

if not position then return { 'not_found' } end
local count = redis.call('ZCOUNT', list, '-inf', '(' .. position)
-- Few have the same position: they are in the order of their names.
for _, other in ipairs(redis.call('ZRANGE', list, position, position, 'BYSCORE', 'LIMIT', 0, 100)) do
  if other == member then break end
  count = count + 1
end
return { 'ahead', count }
