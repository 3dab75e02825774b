#!lua
-- Remembers that runs were asked for, until they are noted (schedule-note.lua); and which handoff an Idempotency-Key
-- stands for. The id names its partition: so the key, and a later backfill, find it too where a later run goes to
-- another one.
-- KEYS: 1 prefix:{tag}:schedule:tenant:name   the schedule   2 prefix:{tag}:schedule:tenant:name:begun   the runs that
--         were asked for and that aren't noted: the id and when (ms), by that; of what makes up for a tick that (ms),
--         and its round
--       3 prefix:{tag}:q:token   the run that the key stands for, likewise; left out without a key
-- ARGV: 1 the call's deadline (ms)  2 the making of the schedule  3 the runs, a line each; with a key, one
--       4 the run that this one replaces, which never was passed and can't be any more; empty for none
--       5 of those that make up for ticks: the version that the schedule must have; else absent
-- Replies: {'begun', run}  this one, or the one that the key stood for already; of those that make up for ticks their
--                          round (lib/ticks.lua)
--          {'stale'}       there is no schedule of that making, or that version; nothing changed
--@include late ticks
local schedule, begun, key, run, replaced = KEYS[1], KEYS[2], KEYS[3], ARGV[3], ARGV[4]
redis.call('EXISTS', schedule, begun, key or begun)
local making, version, rounds = unpack(redis.call('HMGET', schedule, 'making', 'version', 'rounds'))
if making ~= ARGV[2] or ARGV[5] and version ~= ARGV[5] then return { 'stale' } end
local round = ARGV[5] and ms((rounds or 0) + 1)
if round then redis.call('HSET', schedule, 'rounds', round) end
local known = key and redis.call('GET', key)
local isNew = not known or known == replaced
if not isNew then run = known end
if key then redis.call('SET', key, run, 'PX', ms(KEPT_FOR)) end
if isNew then
  if replaced ~= '' then redis.call('ZREM', begun, replaced) end
  for one in string.gmatch(run, '[^\n]+') do
    redis.call('ZADD', begun, string.match(one, ' (%d+)'), round and one .. ' ' .. round or one)
  end
  redis.call('ZREMRANGEBYRANK', begun, 0, -1001)
end
return { 'begun', round or run }
