#!lua flags=allow-oom
-- A key gets another secret; the one it had opens it for a while yet, one before that no more. A secret that is known to those
-- who shouldn't is exchanged when Redis is full as well (allow-oom).
-- KEYS: 1 prefix:{tag}:k:id       the key (key-create says what is in it)
--       2 prefix:{tag}:keys:log   what became of keys
-- ARGV: 1 the call's deadline (ms)  2 id  3 the new secret's digest  4 how long the old one lasts (ms)  5 who asks
-- Replies: {'rotated', fields}  it has the new secret now, or got it before by the same operation
--          {'not_found'} {'revoked'} {'ended'}
--          {'late'}             the call's deadline is over; nothing changed
local key, log = KEYS[1], KEYS[2]
local id, new, grace, by = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local now = clock()
local tenant, agent, digest, previous, ends, revoked =
  unpack(redis.call('HMGET', key, 'tenant', 'agent', 'digest', 'previous', 'ends', 'revoked'))

if late(ARGV[1], now) then return { 'late' } end
if not digest then return { 'not_found' } end
-- The previous one where somebody else's rotation came between this one and its being asked again.
if digest == new or previous == new then return { 'rotated', redis.call('HGETALL', key) } end
if revoked then return { 'revoked' } end
if ends and now >= tonumber(ends) then return { 'ended' } end

redis.call('HSET', key, 'digest', new, 'rotated', ms(now), 'previous', digest, 'previous_ends', ms(now + grace))
redis.call('XADD', log, 'MAXLEN', '~', 1000, '*', 'action', 'rotated', 'id', id, 'tenant', tenant, 'agent', agent, 'by', by)
redis.call('SPUBLISH', log, 'rotated')
return { 'rotated', redis.call('HGETALL', key) }
