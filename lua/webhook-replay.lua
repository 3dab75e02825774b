#!lua
-- A webhook is to get earlier events again. Notes from where and up to where; webhook-plan.lua makes the deliveries,
-- some at a time. Where a replay is under way, both become one.
-- KEYS: 1 prefix:{tag}:hook:tenant:id  the webhook
-- ARGV: 1 the call's deadline (ms)  2 the id after which the events are
-- Replies: {'replaying'}  also where there is nothing to replay: what is after its place in the feed, it gets anyway
--          {'disabled'} {'not_found'}  nothing changed
-- The end is the webhook's place now, so a replay ends, however much happens meanwhile.
--@include late
local key, from = KEYS[1], ARGV[2]
local found = redis.call('HMGET', key, 'cursor', 'disabled', 'replay')
-- An id's two numbers: milliseconds, and a count within them.
local time, count = string.match(from, '(%d+)-(%d+)')
local end_time, end_count = string.match(found[1] or '', '(%d+)-(%d+)')
local begun_time, begun_count = string.match(found[3] or '', '(%d+)-(%d+)')
time, count = tonumber(time), tonumber(count)

if not found[1] then return { 'not_found' } end
if found[2] then return { 'disabled' } end

local ends_behind = end_time + 0 > time or end_time + 0 == time and end_count + 0 > count
local begun_earlier = begun_time and (begun_time + 0 < time or begun_time + 0 == time and begun_count + 0 < count)
if ends_behind then redis.call('HSET', key, 'replay', begun_earlier and found[3] or from, 'replay_to', found[1]) end
return { 'replaying' }
