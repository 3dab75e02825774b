#!lua flags=allow-oom
-- What isn't live any more leaves the live handoffs of an agent with a limit, some at a time, if its end didn't see to
-- that: its key was deleted, or it ended at a replica of version 0.2.0.
-- KEYS: 1 prefix:{tag}:run:tenant:*:agent   the list (lib/runs.lua); on one Redis without a tag
-- ARGV: 1 the call's deadline (ms)  2 where to go on, a score of the list; -inf for the start  3 how many of that score
--       to leave out  4 prefix:{
-- Replies: {'tidied', score, left_out}  where to go on; score: empty at the end
--@include late inbox
local list, from, left_out, prefix = KEYS[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local found = redis.call('ZRANGE', list, from, '+inf', 'BYSCORE', 'LIMIT', left_out, 100, 'WITHSCORES')
local last, same, gone = found[#found], 0, {}
for at = 1, #found, 2 do
  local member = found[at]
  local key = prefix .. string.match(member, ':(...)') .. '}:h:' .. member
  local record = redis.call('HGET', key, 's')
  if not record then isHere(list, key) end
  local status = string.match(record or '', '^[2-5]?:?(%l+)')
  if status ~= 'pending' and status ~= 'caught' then
    gone[#gone + 1] = member
  elseif found[at + 1] == last then
    same = same + 1
  end
end
if #gone > 0 then redis.call('ZREM', list, unpack(gone)) end
return { 'tidied', #found < 200 and '' or last, last == from and left_out + same or same }
