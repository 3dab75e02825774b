#!lua flags=allow-oom
-- Notes what became of a tick that a replica took (schedule-due.lua), or of runs that were asked for.
-- KEYS: 1 prefix:{tag}:schedule:tenant:name   the schedule
--       2 prefix:{tag}:schedules   the schedules of this partition, by when each is looked at next
-- ARGV: 1 the call's deadline (ms)  2 tenant:name  3 the making of the schedule  4 the claim that ends with this, as
--       schedule-put.lua has it; empty: these are runs that were asked for
--       5 the version that was read  6 its next tick (ms); empty: none  7 when it is looked at next (ms); empty: not
--       8 the handoff of this tick; empty to keep the one before  9 the newest tick's run, JSON; empty to keep it
--       10 the member of what is remembered that the first new one replaces; empty for none
--       11 the new ones, a line each  12 the runs, JSON, a line each, the oldest first
--       13 what ends with this of the runs that were asked for (schedule-run.lua), a line each
--       14 1: only if that one hasn't ended yet; else empty
-- Replies: {'noted'}    a run that was noted before isn't noted again
--          {'stale'}    another replica noted it before, or the schedule is gone; nothing changed
--          {'changed'}  it has said something else since, so what comes next is to be found anew; nothing changed
--@include late
local schedule, due, member, making, begun = KEYS[1], KEYS[2], ARGV[2], ARGV[3], ARGV[4]
local runs, ran, open, asked = schedule .. ':runs', schedule .. ':ran', schedule .. ':begun', ARGV[13]
redis.call('EXISTS', schedule, due, runs, ran, open)
local made, version, claim, round = unpack(redis.call('HMGET', schedule, 'making', 'version', 'claim', 'round'))
if made ~= making then return { 'stale' } end
if begun ~= '' and claim ~= begun then return { 'stale' } end
if begun ~= '' and version ~= ARGV[5] then return { 'changed' } end
if ARGV[14] == '1' and not redis.call('ZSCORE', open, asked) then return { 'noted' } end
local noted = {}
if begun == '' then
  for _, run in ipairs(redis.call('LRANGE', runs, 0, -1)) do noted[run] = true end
end

local newest = string.match(ARGV[11], '[^\n]+$')
if begun ~= '' then
  redis.call('HSET', schedule, 'claim', '', 'next', ARGV[6])
  -- It begins anew (lib/ticks.lua).
  if string.match(begun, '^%d+') == ARGV[6] then redis.call('HSET', schedule, 'round', ms((round or 0) + 1)) end
  if ARGV[7] == '' then redis.call('ZREM', due, member) else redis.call('ZADD', due, ARGV[7], member) end
  if ARGV[8] ~= '' then redis.call('HSET', schedule, 'work', ARGV[8]) end
  if ARGV[9] ~= '' then redis.call('HSET', schedule, 'last', ARGV[9]) end
  if newest then redis.call('HSET', schedule, 'range', newest) end
end
for range in string.gmatch(ARGV[11], '[^\n]+') do redis.call('ZADD', ran, ms(now), range) end
if ARGV[10] ~= '' then redis.call('ZREM', ran, ARGV[10]) end
-- What ran more than 30 days ago is forgotten. More members than this come of thousands of changes of its times alone,
-- or of as many backfills that lie apart (handoffs/schedules/memory.ts).
local old = math.max(redis.call('ZCOUNT', ran, '-inf', '(' .. ms(now - 2592000000)), redis.call('ZCARD', ran) - 10000)
if old > 0 then redis.call('ZREMRANGEBYRANK', ran, 0, old - 1) end
for run in string.gmatch(ARGV[12], '[^\n]+') do
  if not noted[run] then redis.call('RPUSH', runs, run) end
  noted[run] = true
end
for run in string.gmatch(asked, '[^\n]+') do redis.call('ZREM', open, run) end
redis.call('LTRIM', runs, -100, -1)
return { 'noted' }
