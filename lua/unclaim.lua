#!lua flags=allow-oom
-- Forgets what is kept of an Idempotency-Key's request to an inbox that was answered without a handoff: such an answer isn't kept.
-- KEYS: 1 prefix:{tag}:q:token or n:token   as claim.lua or take.lua keep it
-- ARGV: 1 the call's deadline (ms)  2 what is kept there, or what it begins with
-- Replies: {'forgotten'}   it isn't kept now, or something else is
--          {'late'}        the call's deadline is over; nothing changed
local key = KEYS[1]
local now = clock()

if late(ARGV[1], now) then return { 'late' } end
if string.sub(redis.call('GET', key) or '', 1, #ARGV[2]) == ARGV[2] then redis.call('DEL', key) end
return { 'forgotten' }
