#!lua
-- Changes a webhook: another secret, which is derived from the next generation; or a disabled one begins anew, with
-- what its tenant's feed gets from now on.
-- KEYS: 1 prefix:{tag}:hook:tenant:id  2 prefix:{tag}:hook:tenant:id:due  3 prefix:{tag}:hook:tenant:id:pending
--       4 prefix:{tag}:e:tenant   all as in webhook-create.lua
-- ARGV: 1 the call's deadline (ms)  2 rotated or enabled  3 of rotated: the operation's token
--       4 of rotated: for how long the old secret signs as well (ms)
-- Replies: {'rotated', fields} {'enabled', fields}  as they are now; also where it was so before
--          {'not_found'}        there is no such webhook
--@include late
local key, due, pending, feed = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local isRotated, token, grace = ARGV[2] == 'rotated', ARGV[3], ARGV[4]
local found = redis.call('HMGET', key, 'created', 'disabled', 'generation', 'rotated')
local newest = redis.call('XREVRANGE', feed, '+', '-', 'COUNT', 1)[1]

if not found[1] then return { 'not_found' } end

if isRotated and found[4] ~= token then
  redis.call('HSET', key, 'generation', ms(found[3] + 1), 'rotated', token, 'old_until', ms(now + grace))
elseif not isRotated and found[2] then
  redis.call('HDEL', key, 'disabled', 'failing', 'replay', 'replay_to')
  redis.call('HSET', key, 'cursor', newest and newest[1] or '0-0')
  redis.call('DEL', due, pending)
end
return { isRotated and 'rotated' or 'enabled', redis.call('HGETALL', key) }
