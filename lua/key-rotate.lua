#!lua flags=allow-oom
-- Gives a key a new secret. The present one works for a while longer, an earlier one no more. A leaked secret can be
-- replaced even when Redis is full (allow-oom).
-- KEYS: 1 prefix:{tag}:k:id       the key (key-create says what is in it)
--       2 prefix:{tag}:keys:log   the log of what became of keys
-- ARGV: 1 the call's deadline (ms)  2 id  3 the new secret's digest  4 how long the old one lasts (ms)  5 the author
-- Replies: {'rotated', fields}  it has the new secret now, or got it before by the same operation
--          {'not_found'} {'revoked'} {'ended'}
--          {'late'}             the call's deadline is over; nothing changed
local key, log = KEYS[1], KEYS[2]
local id, new, grace, by = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local now = clock()
local tenant, agent, digest, previous, ends, revoked =
  unpack(redis.call('HMGET', key, 'tenant', 'agent', 'digest', 'previous', 'ends', 'revoked'))

if now > ARGV[1] + 0 then return { 'late' } end
if not digest then return { 'not_found' } end
-- It is the previous secret if another rotation came between this call and its retry.
if digest == new or previous == new then return { 'rotated', redis.call('HGETALL', key) } end
if revoked then return { 'revoked' } end
if ends and now >= tonumber(ends) then return { 'ended' } end

redis.call('HSET', key, 'digest', new, 'rotated', ms(now), 'previous', digest, 'previous_ends', ms(now + grace))
redis.call('XADD', log, 'MAXLEN', '~', 1000, '*',
  'action', 'rotated', 'id', id, 'tenant', tenant, 'agent', agent, 'by', by)
redis.pcall('SPUBLISH', log, 'rotated')
return { 'rotated', redis.call('HGETALL', key) }
