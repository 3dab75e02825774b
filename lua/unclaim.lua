#!lua flags=allow-oom
-- Forgets an Idempotency-Key's request to an inbox that took no handoff: an answer without one isn't remembered.
-- KEYS: 1 prefix:{tag}:q:token or n:token   in the form of claim.lua or take.lua
-- ARGV: 1 the call's deadline (ms)  2 the value to delete, or its beginning
-- Replies: {'forgotten'}   the value is gone, or a different one is there
--          {'late'}        the call's deadline is over; nothing changed
local key = KEYS[1]
local now = clock()

if now > ARGV[1] + 0 then return { 'late' } end
if string.sub(redis.call('GET', key) or '', 1, #ARGV[2]) == ARGV[2] then redis.call('DEL', key) end
return { 'forgotten' }
