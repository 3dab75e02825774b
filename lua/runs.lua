#!lua flags=no-writes
-- Lists the values of a label that makes runs, with their counts (lib/runs.lua), the value that was passed last first.
-- KEYS: 1 prefix:{tag}:runs:tenant:name   the values; on one Redis without a tag
-- ARGV: 1 how many at most  2 when the last one listed was passed last (ms); empty for the start  3 that value
-- Replies: {'listed', more, run, …}  more: 1 if there may be others, else 0. A run: {value, passed_last, live, done,
--                failed, other, first, last}
local values, limit, score, last = KEYS[1], tonumber(ARGV[1]), ARGV[2], ARGV[3]
local base, of = string.match(values, '^(.*)runs:([^:]+:[^:]+)$')
-- Of those that were passed in the same millisecond, all that come before the last one listed are passed by.
local rank = score == '' and 0 or redis.call('ZCOUNT', values, '(' .. score, '+inf')
local isPast, found, looks = score == '', {}, 5 * limit
while #found < limit and looks > 0 do
  local entries = redis.call('ZRANGE', values, rank, rank + 49, 'REV', 'WITHSCORES')
  for at = 1, #entries, 2 do
    if #found == limit or looks == 0 then return { 'listed', 1, unpack(found) } end
    local value = entries[at]
    if isPast or tonumber(entries[at + 1]) ~= tonumber(score) then
      isPast, looks = true, looks - 1
      local total =
        redis.call('HMGET', base .. 'total:' .. of .. ':' .. value, 'live', 'done', 'failed', 'other', 'first', 'last')
      -- It may have gone.
      if total[1] then found[#found + 1] = { value, entries[at + 1], unpack(total, 1, 6) } end
    elseif value == last then
      isPast = true
    end
  end
  if #entries < 100 then return { 'listed', 0, unpack(found) } end
  rank = rank + 50
end
return { 'listed', 1, unpack(found) }
