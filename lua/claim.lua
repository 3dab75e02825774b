#!lua flags=allow-oom
-- Keeps which request an agent's Idempotency-Key came with to an inbox, whichever inbox that was, and who asked it first: whose reply is
-- lost and who asks once more is to be told the same.
-- KEYS: 1 prefix:{tag}:q:token   the request's digest, and who asked
-- ARGV: 1 the call's deadline (ms)  2 the request's digest  3 how long it is kept (ms): where it is kept for longer, that stays  4 who asks
-- Replies: {'claimed'}   the key is new
--          {'known'}     it came with this request before
--          {'reused'}    it came with another request before; nothing changed
--          {'late'}      the call's deadline is over; nothing changed
local key, request, asker = KEYS[1], ARGV[2], ARGV[4]
local now = clock()
local before = redis.call('GET', key)

if late(ARGV[1], now) then return { 'late' } end
local asked, first = string.match(before or '', '^(%S+) ?(%S*)$')
if before and asked ~= request then return { 'reused' } end
if before then
  redis.call('PEXPIREAT', key, ms(now + ARGV[3]), 'GT')
else
  redis.call('SET', key, request .. ' ' .. asker, 'PX', ARGV[3])
end
return { before and first ~= asker and 'known' or 'claimed' }
