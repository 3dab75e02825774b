#!lua flags=allow-oom
-- Takes or renews a lease that one replica holds at a time. Losing it is safe: what it guards (the sweep) may run twice.
-- KEYS: 1 prefix:{tag}:sweeper   the replica that sweeps
-- ARGV: 1 the call's deadline (ms)  2 the asker  3 for how long (ms)
-- Replies: {'held'}   the asker holds it from now on
--          {'taken'}  another does
--          {'late'}   the call's deadline is over; nothing changed
local key = KEYS[1]
local holder = redis.call('GET', key)

if late(ARGV[1], clock()) then return { 'late' } end
if holder and holder ~= ARGV[2] then return { 'taken' } end

redis.call('SET', key, ARGV[2], 'PX', ARGV[3])
return { 'held' }
