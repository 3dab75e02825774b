#!lua flags=allow-oom
-- Changes what a key may do and until when; its secrets stay. A key must become weaker even when Redis is full
-- (allow-oom).
-- KEYS: 1 prefix:{tag}:k:id       the key (key-create says what is in it)
--       2 prefix:{tag}:keys:over  those that end or have ended, by when they are forgotten
--       3 prefix:{tag}:keys:log   the log of what became of keys
-- ARGV: 1 the call's deadline (ms)  2 id  3 update_token  4 the scopes, as in key-create  5 how long it lasts from now
--       (ms)  6 its rate limit  7 its inboxes  8 how long an ended key is kept (ms)  9 the author
--       4 to 7: empty to leave it as it is; 5 to 7: * for no end, the service's limit, any inbox
-- Replies: {'updated', now, fields}  it is so now, or the same operation made it so before
--          {'not_found'} {'revoked'} {'ended'}
--          {'late'}                  the call's deadline is over; nothing changed
local key, over, log = KEYS[1], KEYS[2], KEYS[3]
local id, token, scopes, lasts = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local rate, inboxes, retention, by = ARGV[6], ARGV[7], ARGV[8], ARGV[9]
local now = clock()
local tenant, agent, ends, revoked, made_by =
  unpack(redis.call('HMGET', key, 'tenant', 'agent', 'ends', 'revoked', 'update_token'))

if now > ARGV[1] + 0 then return { 'late' } end
if not tenant then return { 'not_found' } end
if made_by == token then return { 'updated', now, redis.call('HGETALL', key) } end
if revoked then return { 'revoked' } end
if ends and now >= tonumber(ends) then return { 'ended' } end

-- Without an end it stays until the year 9999: PERSIST would be a right that nothing else needs.
if lasts == '*' then
  redis.call('PEXPIREAT', key, '253402300799000')
  redis.call('ZREM', over, id)
  redis.call('HDEL', key, 'ends')
elseif lasts ~= '' then
  local new_end = now + lasts
  redis.call('PEXPIREAT', key, ms(new_end + retention))
  redis.call('ZADD', over, ms(new_end + retention), id)
  redis.call('HSET', key, 'ends', ms(new_end))
end
redis.call('HSET', key, 'update_token', token)
if scopes ~= '' then redis.call('HSET', key, 'scopes', scopes) end
if rate == '*' then redis.call('HDEL', key, 'rate') elseif rate ~= '' then redis.call('HSET', key, 'rate', rate) end
if inboxes == '*' then
  redis.call('HDEL', key, 'inboxes')
elseif inboxes ~= '' then
  redis.call('HSET', key, 'inboxes', inboxes)
end
redis.call('XADD', log, 'MAXLEN', '~', 1000, '*',
  'action', 'updated', 'id', id, 'tenant', tenant, 'agent', agent, 'by', by)
redis.pcall('SPUBLISH', log, 'updated')
return { 'updated', now, redis.call('HGETALL', key) }
