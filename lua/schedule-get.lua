#!lua flags=no-writes
-- Reads a schedule.
-- KEYS: 1 prefix:{tag}:schedule:tenant:name   the schedule
--       2 prefix:{tag}:schedule:tenant:name:runs   its runs, with :ran the ticks that ran, or with :begun the runs
--         that were asked for and that aren't noted; may be left out
-- ARGV: 1 how many of these
-- Replies: {'found', now, fields, beside}  the fields as schedule-put.lua has them; of the list, or of the sorted set,
--                                          the last ones
--          {'not_found', now}
--@include inbox
local schedule, beside, count = KEYS[1], KEYS[2], tonumber(ARGV[1])
local now = clock()
local fields = redis.call('HGETALL', schedule)
if not fields[1] then return { 'not_found', now } end
local found = {}
if beside then
  isHere(schedule, beside)
  found = string.find(beside, ':runs$') and redis.call('LRANGE', beside, -count, -1) or
    redis.call('ZRANGE', beside, -count, -1)
end
return { 'found', now, fields, found }
