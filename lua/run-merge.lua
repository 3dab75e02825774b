#!lua flags=allow-oom
-- Brings what one partition of a Cluster counts of a run to the run's total, at its tenant's home. Field t and a tag is
-- what was brought from that partition last: when it was counted (microseconds), live, done, failed and other.
-- KEYS: 1 prefix:{tag}:total:tenant:name:value   the run's total (lib/runs.lua)
-- ARGV: 1 the call's deadline (ms)  2 the partition's tag  3 when it was counted (microseconds)
--       4 live, done, failed and other, a space between each  5 when the first was passed (ms)  6 when the last was
-- Replies: {'merged'}   these counts, or later ones, are in the total
--@include late runs
local total, field, counted, counts, first, last = KEYS[1], 't' .. ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local place, run = string.match(total, '^([^}]*}:)total:(.*)$')
local values = place .. 'runs:' .. string.match(run, '^[^:]+:[^:]+')
redis.call('EXISTS', total, values)

local fours = '(%d+) (%d+) (%d+) (%d+)$'
local before = redis.call('HGET', total, field) or '0 0 0 0 0'
if tonumber(string.match(before, '^%d+')) >= tonumber(counted) then return { 'merged' } end
local live, done, failed, other = string.match(counts, fours)
local was_live, was_done, was_failed, was_other = string.match(before, fours)
local sums = redis.call('HMGET', total, 'live', 'done', 'failed', 'other', 'first', 'last')
local left = (sums[1] or 0) + live - was_live
redis.call('HSET', total, field, counted .. ' ' .. counts, 'live', left, 'done', (sums[2] or 0) + done - was_done,
  'failed', (sums[3] or 0) + failed - was_failed, 'other', (sums[4] or 0) + other - was_other,
  'first', ms(math.min(sums[5] or first, first)), 'last', ms(math.max(sums[6] or last, last)))
if left > 0 then
  keepUntil(total, now + RETENTION + 40 * DAY)
else
  redis.call('PEXPIREAT', total, ms(now + RETENTION + 1000))
end
nameRun(place, run, last + 0, counted + 0)
return { 'merged' }
