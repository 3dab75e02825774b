#!lua flags=allow-oom
-- Keeps which request an agent's Idempotency-Key came with to an inbox, whichever inbox that was.
-- KEYS: 1 prefix:{tag}:q:token   the request's digest
-- ARGV: 1 the call's deadline (ms)  2 the request's digest  3 how long it is kept (ms): where it is kept for longer, that stays
-- Replies: {'claimed'}   the key is new
--          {'known'}     it came with this request before
--          {'reused'}    it came with another request before; nothing changed
--          {'late'}      the call's deadline is over; nothing changed
local key, request = KEYS[1], ARGV[2]
local now = clock()
local before = redis.call('GET', key)

if late(ARGV[1], now) then return { 'late' } end
if before and before ~= request then return { 'reused' } end
if before then
  redis.call('PEXPIREAT', key, ms(now + ARGV[3]), 'GT')
else
  redis.call('SET', key, request, 'PX', ARGV[3])
end
return { before and 'known' or 'claimed' }
