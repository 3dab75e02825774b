#!lua flags=no-writes
-- Says how many handoffs can be caught from an inbox's list before one of them.
-- KEYS: 1 prefix:{tag}:i:tenant:inbox   the handoffs that can be caught from the inbox in one partition, by position
--                                      (lib/inbox.lua)
-- ARGV: 1 tenant:id of a handoff in this list; or the position of a handoff in the inbox's other list
-- Replies: {'ahead', count, position}  the position is text
--          {'not_found'}  it isn't in the list
local list, position = KEYS[1], ARGV[1]
local is_here = string.find(position, ':', 1, true)
if is_here then
  position = redis.call('ZSCORE', list, ARGV[1])
  if not position then return { 'not_found' } end
end
local count = redis.call('ZCOUNT', list, '-inf', '(' .. position)
-- Few have the same position: they are in the order of their names.
for _, member in ipairs(is_here and redis.call('ZRANGE', list, position, position, 'BYSCORE', 'LIMIT', 0, 100) or {}) do
  if member == ARGV[1] then break end
  count = count + 1
end
return { 'ahead', count, position }
