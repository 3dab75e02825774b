#!lua flags=allow-oom
-- Forgets which request an Idempotency-Key came with, where it was answered without a handoff: such an answer isn't kept.
-- KEYS: 1 prefix:{tag}:q:token   the request's digest
-- ARGV: 1 the call's deadline (ms)  2 the request's digest
-- Replies: {'forgotten'}   it isn't kept now, or another request's is
--          {'late'}        the call's deadline is over; nothing changed
local key = KEYS[1]
local now = clock()

if late(ARGV[1], now) then return { 'late' } end
if redis.call('GET', key) == ARGV[2] then redis.call('DEL', key) end
return { 'forgotten' }
