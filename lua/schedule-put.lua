#!lua
-- Makes a schedule, or replaces what it says.
-- KEYS: 1 prefix:{tag}:schedule:tenant:name   the schedule   2 prefix:{tag}:schedules:tenant   its tenant's, by name
--       3 prefix:{tag}:schedules   the schedules of this partition, by when each is looked at next
-- ARGV: 1 the call's deadline (ms)  2 tenant:name  3 the version that was read, a space, and the next tick
--       that was read; empty: there was none
--       4 the operation's token, which is the new version  5 how many a tenant may have
--       6 when it is looked at next (ms); empty: not  7 what it says, JSON  8 its next tick (ms); empty: none
--       9 the tag of the partition that its handoffs are in  10 its handoff, JSON; empty: as it is
-- Replies: {'put', making}  it says this now, or the same operation said it before
--          {'too_many'}  its tenant has as many as it may have; nothing changed
--          {'changed'}   another version is there, or that tick was noted meanwhile; nothing changed
-- The fields: making, when it was made (microseconds), which distinguishes it from those of that name before it;
-- version; says, JSON (handoffs/schedules/definition.ts); handoff, JSON; lock, the name of the
-- key that sealed it, empty for none; home, the tag of its handoffs' partition;
-- next, its next tick (ms), empty for none; rounds, how often backfills began ticks, absent for 0;
-- round, how often a tick was to begin anew, absent for 0; claim: that tick
-- once a replica has begun it, the tag, which replica took it last, a slash and how often it was taken, and the round
-- unless that is 0, with spaces between, empty for none; last, the newest tick's run, JSON; work, the handoff of the
-- newest tick that passed one; range, the newest member of what is remembered. Beside it, with the same beginning:
-- `:runs`, a list of the newest runs, JSON (schedule-note.lua); `:ran`, a sorted set of the ticks that ran
-- (handoffs/schedules/memory.ts), by when; `:begun` (schedule-run.lua).
--@include late
local schedule, names, due = KEYS[1], KEYS[2], KEYS[3]
local member, seen, version, max = ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
local name = string.match(member, ':(.*)$')
-- While the slot moves, what isn't found here may be on the other node: Redis refuses to look for several then.
redis.call('EXISTS', schedule, names, due)
local is_here, making, claim, next = unpack(redis.call('HMGET', schedule, 'version', 'making', 'claim', 'next'))

if is_here == version then return { 'put', making } end
-- A tick that was noted since it was read must not come next again.
if (is_here and is_here .. ' ' .. next or '') ~= seen then return { 'changed' } end
if not is_here and redis.call('ZCARD', names) >= max then return { 'too_many' } end

if not is_here then
  making = seconds .. micros
  redis.call('HSET', schedule, 'making', making, 'claim', '')
  redis.call('ZADD', names, 0, name)
end
redis.call('HSET', schedule, 'version', version, 'says', ARGV[7], 'next', ARGV[8], 'home', ARGV[9])
if ARGV[10] ~= '' then
  redis.call('HSET', schedule, 'handoff', ARGV[10], 'lock', string.match(ARGV[10], '^[\1\2](........)') or '')
end
-- What a replica has begun must be settled soon, also where there is no other tick.
local looked_at = ARGV[6]
if (claim or '') ~= '' then looked_at = ms(math.min(tonumber(looked_at) or now + 2500, now + 2500)) end
if looked_at == '' then redis.call('ZREM', due, member) else redis.call('ZADD', due, looked_at, member) end
return { 'put', making }
