#!lua flags=no-writes
-- Says how many handoffs can be caught from an inbox's list before one of them.
-- KEYS: 1 prefix:{tag}:i:tenant:inbox   what can be caught from the inbox in one partition, by turn (lib/inbox.lua)
-- ARGV: 1 tenant:id of one that is in this list; or, of one that is in the inbox's other list, its turn
-- Replies: {'ahead', count, turn}  the turn is text
--          {'not_found'}  it isn't in the list
local list, turn = KEYS[1], ARGV[1]
local is_here = string.find(turn, ':', 1, true)
if is_here then
  turn = redis.call('ZSCORE', list, ARGV[1])
  if not turn then return { 'not_found' } end
end
local count = redis.call('ZCOUNT', list, '-inf', '(' .. turn)
-- Few have the same turn: those are in the order of their names.
for _, member in ipairs(is_here and redis.call('ZRANGE', list, turn, turn, 'BYSCORE', 'LIMIT', 0, 100) or {}) do
  if member == ARGV[1] then break end
  count = count + 1
end
return { 'ahead', count, turn }
