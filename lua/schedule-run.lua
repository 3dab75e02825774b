#!lua
-- Remembers which handoff an agent's Idempotency-Key stands for at a schedule. The id names its partition, so the key
-- finds it too where a later run goes to another one.
-- KEYS: 1 prefix:{tag}:schedule:tenant:name   the schedule   2 prefix:{tag}:q:token   the handoff's id
-- ARGV: 1 the call's deadline (ms)  2 the making of the schedule  3 the id
--       4 the id that this one replaces, which never was a handoff and can't be one any more; empty for none
-- Replies: {'begun', id}  the key stands for this id: for one that another call said, if there was one
--          {'stale'}      there is no schedule of that making; nothing changed
--@include late ticks
local schedule, key = KEYS[1], KEYS[2]
redis.call('EXISTS', schedule, key)
if redis.call('HGET', schedule, 'making') ~= ARGV[2] then return { 'stale' } end
local id = redis.call('GET', key)
if not id or id == ARGV[4] then id = ARGV[3] end
redis.call('SET', key, id, 'PX', ms(KEPT_FOR))
return { 'begun', id }
