#!lua flags=allow-oom
-- Revokes a key for good, even when Redis is full (allow-oom).
-- KEYS: 1 prefix:{tag}:k:id       the key (key-create says what is in it)
--       2 prefix:{tag}:keys:over  those that end or have ended, by when they are forgotten
--       3 prefix:{tag}:keys:log   the log of what became of keys
-- ARGV: 1 the call's deadline (ms)  2 id  3 revoke_token  4 how long it is kept (ms)  5 the author
-- Replies: {'revoked', at}          it is revoked now, or was before by the same operation
--          {'already_revoked', at}  another operation revoked it before
--          {'not_found'}
--          {'late'}                 the call's deadline is over; nothing changed
local key, over, log = KEYS[1], KEYS[2], KEYS[3]
local id, token, retention, by = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local now = clock()
local tenant, agent, revoked, made_by = unpack(redis.call('HMGET', key, 'tenant', 'agent', 'revoked', 'revoke_token'))

if now > ARGV[1] + 0 then return { 'late' } end
if not tenant then return { 'not_found' } end
if revoked then return { made_by == token and 'revoked' or 'already_revoked', tonumber(revoked) } end

redis.call('HSET', key, 'revoked', ms(now), 'revoke_token', token)
redis.call('PEXPIREAT', key, ms(now + retention))
redis.call('ZADD', over, ms(now + retention), id)
redis.call('XADD', log, 'MAXLEN', '~', 1000, '*',
  'action', 'revoked', 'id', id, 'tenant', tenant, 'agent', agent, 'by', by)
redis.pcall('SPUBLISH', log, 'revoked')
return { 'revoked', now }
