#!lua flags=no-writes
-- Lists the values of a label that makes runs, with their counts (lib/runs.lua), the value that was passed last first.
-- KEYS: 1 prefix:{tag}:runs:tenant:name   the values; on one Redis without a tag
-- ARGV: 1 how many at most  2 when the last one seen was passed last (ms); empty for the start  3 that value
-- Replies: {'listed', value, passed_last, run, …}  the last one seen, behind which the list goes on; nil at the end.
--                A run: {value, live, done, failed, other, first, last}
--@include listing
local values, limit, score, last = KEYS[1], tonumber(ARGV[1]), ARGV[2], ARGV[3]
local base, of = string.match(values, '^(.*)runs:([^:]+:[^:]+)$')
local rank
if score == '' then
  rank = redis.call('ZCARD', values) - 1
else
  local is_there = tonumber(redis.call('ZSCORE', values, last) or -1) == tonumber(score)
  rank = rankBehind(values, score, last) - (is_there and 2 or 1)
end
-- Many values may have gone by now: at so many a call looks.
local found, looks = {}, math.max(100, 5 * limit)
while rank >= 0 do
  local entries = redis.call('ZRANGE', values, math.max(0, rank - 49), rank, 'WITHSCORES')
  for at = #entries - 1, 1, -2 do
    local value = entries[at]
    local total =
      redis.call('HMGET', base .. 'total:' .. of .. ':' .. value, 'live', 'done', 'failed', 'other', 'first', 'last')
    if total[1] then found[#found + 1] = { value, unpack(total, 1, 6) } end
    looks, rank = looks - 1, rank - 1
    if rank >= 0 and (#found == limit or looks == 0) then
      return { 'listed', value, entries[at + 1], unpack(found) }
    end
  end
end
return { 'listed', false, false, unpack(found) }
