#!lua flags=allow-oom
-- Changes a key: what it may do and until when, while its secrets stay; or its secret, where the present one works for
-- a while longer and an earlier one no more; or revokes it for good. Also when Redis is full (allow-oom): a key must
-- become weaker then, and a leaked secret be replaced.
-- KEYS: 1 prefix:{tag}:k:id       the key (key-create says what is in it)
--       2 prefix:{tag}:keys:over  those that end or have ended, by when they are forgotten
--       3 prefix:{tag}:keys:log   the log of keys' changes
-- ARGV: 1 the call's deadline (ms)  2 id  3 updated, rotated or revoked
--       4 the operation's token; of rotated: the new secret's digest  5 how long an ended key is kept (ms)
--       6 the scopes, as in key-create; of rotated: how long the present secret works (ms)
--       7 how long it lasts from now (ms)  8 its rate limit  9 its inboxes  10 the author
--       6 to 9: empty to leave it as it is; 7 to 9: * for no end, the service's limit, any inbox
-- Replies: {'updated', now, fields} {'rotated', now, fields} {'revoked', at}  it is so now, or the same operation made
--                       it so before
--          {'not_found'} {'ended'}  the latter isn't in the way of a revocation
--          {'already_revoked', at}  another operation revoked it before
--@include late
local key, over, log = KEYS[1], KEYS[2], KEYS[3]
local id, action, token, retention = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local scopes, lasts, rate, inboxes, by = ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10]
local tenant, agent, digest, previous, ends, updated_by, revoked, revoked_by = unpack(redis.call('HMGET', key,
  'tenant', 'agent', 'digest', 'previous', 'ends', 'update_token', 'revoked', 'revoke_token'))

if not tenant then return { 'not_found' } end
if action == 'revoked' and revoked and revoked_by == token then return { 'revoked', tonumber(revoked) } end
if action == 'updated' and updated_by == token then return { 'updated', now, redis.call('HGETALL', key) } end
-- It is the previous secret if another rotation came between this call and its retry.
if action == 'rotated' and (digest == token or previous == token) then
  return { 'rotated', now, redis.call('HGETALL', key) }
end
if revoked then return { 'already_revoked', tonumber(revoked) } end
if action ~= 'revoked' and ends and now >= tonumber(ends) then return { 'ended' } end

if action == 'rotated' then
  redis.call('HSET', key, 'digest', token, 'rotated', ms(now), 'previous', digest, 'previous_ends', ms(now + scopes))
elseif action == 'revoked' then
  redis.call('HSET', key, 'revoked', ms(now), 'revoke_token', token)
  redis.call('PEXPIREAT', key, ms(now + retention))
  redis.call('ZADD', over, ms(now + retention), id)
else
  -- Without an end it stays until the year 9999: PERSIST would be a right that nothing else needs.
  if lasts == '*' then
    redis.call('PEXPIREAT', key, '253402300799000')
    redis.call('ZREM', over, id)
  elseif lasts ~= '' then
    redis.call('PEXPIREAT', key, ms(now + lasts + retention))
    redis.call('ZADD', over, ms(now + lasts + retention), id)
    lasts = ms(now + lasts)
  end
  redis.call('HSET', key, 'update_token', token)
  local values = { scopes, lasts, rate, inboxes }
  for at, field in ipairs({ 'scopes', 'ends', 'rate', 'inboxes' }) do
    local value = values[at]
    if value == '*' then redis.call('HDEL', key, field) end
    if value ~= '*' and value ~= '' then redis.call('HSET', key, field, value) end
  end
end
redis.call('XADD', log, 'MAXLEN', '~', 1000, '*',
  'action', action, 'id', id, 'tenant', tenant, 'agent', agent, 'by', by)
redis.pcall('SPUBLISH', log, action)
return { action == 'rotated' and 'rotated' or action == 'revoked' and 'revoked' or 'updated', now,
  action ~= 'revoked' and redis.call('HGETALL', key) or nil }
