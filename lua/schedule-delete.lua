#!lua flags=allow-oom
-- Deletes a schedule, with what is beside it. It ticks no more.
-- KEYS: 1 prefix:{tag}:schedule:tenant:name   the schedule   2 prefix:{tag}:schedules:tenant   its tenant's, by name
--       3 prefix:{tag}:schedules   the schedules of this partition, by when each is looked at next
-- ARGV: 1 the call's deadline (ms)  2 tenant:name  3 the making that was read
--       4 the claim whose tick was settled (tick-settle.lua), as schedule-put.lua has it; empty for none
-- Replies: {'deleted'}       it is gone
--          {'begun', claim}  a replica has begun another tick, which is to be settled first; nothing changed
--          {'not_found'}     there is none of that making
--@include late
local schedule, names, due, member = KEYS[1], KEYS[2], KEYS[3], ARGV[2]
redis.call('EXISTS', schedule, names, due)
local making, claim = unpack(redis.call('HMGET', schedule, 'making', 'claim'))
if making ~= ARGV[3] then return { 'not_found' } end
if (claim or '') ~= '' and claim ~= ARGV[4] then return { 'begun', claim } end

redis.call('ZREM', due, member)
redis.call('ZREM', names, (string.match(member, ':(.*)$')))
redis.call('DEL', schedule, schedule .. ':runs', schedule .. ':ran', schedule .. ':begun')
return { 'deleted' }
