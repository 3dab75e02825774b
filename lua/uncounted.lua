#!lua flags=no-writes
-- Names live handoffs of a tenant that agents with a limit passed, and that don't count as theirs yet (lib/runs.lua).
-- KEYS: 1 prefix:{tag}:due:tenant   the tenant's live handoffs of a partition
-- ARGV: 1 where to go on, a time in the index; -inf for the start  2 how many of that time to leave out
--       3 prefix:{tag}:h:  4 the agents, each between two spaces
-- Replies: {'named', time, left_out, member, …}  where to go on; time: empty at the end. Some are named twice
local from, left_out, prefix, agents, named = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], {}
local found = redis.call('ZRANGE', KEYS[1], from, '(inf', 'BYSCORE', 'LIMIT', left_out, 100, 'WITHSCORES')
local last, same = found[#found], 0
for at = 1, #found, 2 do
  local member = found[at]
  if found[at + 1] == last then same = same + 1 end
  local record, extra = unpack(redis.call('HMGET', prefix .. member, 's', 'x'))
  -- While the slot moves, it may be on the other node (isHere in lib/inbox.lua).
  if not record then redis.call('EXISTS', KEYS[1], prefix .. member) end
  local agent = string.match(record or '', '^[2-5]?:?%l+ %S+ %d+ %d+ (%S+)')
  local isLimited = agent and string.find(agents, ' ' .. agent .. ' ', 1, true)
  if isLimited and not string.find((extra or '') .. ' ', ' J*:' .. agent .. ' ', 1, true) then
    named[#named + 1] = member
  end
end
if #found < 200 then return { 'named', '', 0, unpack(named) } end
return { 'named', last, last == from and left_out + same or same, unpack(named) }
