#!lua flags=allow-oom
-- Remembers which request an agent's Idempotency-Key came with, to whichever inbox, and which asker came first. So if a
-- reply was lost, the same asker's retry gets the same reply.
-- KEYS: 1 prefix:{tag}:q:token   the request's digest, and the first asker
-- ARGV: 1 the call's deadline (ms)  2 the request's digest  3 how long to keep it (ms); a longer time isn't shortened
--       4 the asker
-- Replies: {'claimed'}   the key is new, or this asker claimed it before
--          {'known'}     another asker came with the same request before
--          {'reused'}    it came with another request before; nothing changed
--          {'late'}      the call's deadline is over; nothing changed
local key, request, asker = KEYS[1], ARGV[2], ARGV[4]
local now = clock()
local before = redis.call('GET', key)

if late(ARGV[1], now) then return { 'late' } end
local asked, first = string.match(before or '', '^(%S+) (%S+)$')
if before and asked ~= request then return { 'reused' } end
if before then
  redis.call('PEXPIREAT', key, ms(now + ARGV[3]), 'GT')
else
  redis.call('SET', key, request .. ' ' .. asker, 'PX', ARGV[3])
end
return { before and first ~= asker and 'known' or 'claimed' }
