#!lua
-- A disabled webhook begins anew: with what its tenant's feed gets from now on. One that is enabled stays as it is.
-- KEYS: 1 prefix:{tag}:hook:tenant:id          the webhook
--       2 prefix:{tag}:hook:tenant:id:due      its deliveries by when each is tried next
--       3 prefix:{tag}:hook:tenant:id:pending  what they are
--       4 prefix:{tag}:e:tenant                the tenant's feed
-- ARGV: 1 the call's deadline (ms)
-- Replies: {'enabled', fields}  as they are now
--          {'not_found'}        there is no such webhook
--          {'late'}             the call's deadline is over; nothing changed
local key, due, pending, feed = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local now = clock()
local found = redis.call('HMGET', key, 'created', 'disabled')
local newest = redis.call('XREVRANGE', feed, '+', '-', 'COUNT', 1)[1]

if now > ARGV[1] + 0 then return { 'late' } end
if not found[1] then return { 'not_found' } end

if found[2] then
  redis.call('HDEL', key, 'disabled', 'failing', 'replay', 'replay_to')
  redis.call('HSET', key, 'cursor', newest and newest[1] or '0-0')
  redis.call('DEL', due, pending)
end
return { 'enabled', redis.call('HGETALL', key) }
