#!lua flags=allow-oom
-- Removes a webhook with its deliveries. Removing it again changes nothing.
-- KEYS: 1 prefix:{tag}:hook:tenant:id  2 prefix:{tag}:hook:tenant:id:due  3 prefix:{tag}:hook:tenant:id:pending
--       4 prefix:{tag}:hook:tenant:id:delivered  5 prefix:{tag}:hook:tenant:id:failed  6 prefix:{tag}:hooks:tenant
--       7 prefix:{tag}:hooks  8 prefix:{tag}:hook:tenant:id:summarised   all as in webhook-create.lua
-- ARGV: 1 the call's deadline (ms)  2 tenant  3 id
-- Replies: {'deleted'}
--@include late
local webhooks, tenants, tenant, id = KEYS[6], KEYS[7], ARGV[2], ARGV[3]

redis.call('DEL', KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[8])
local before = redis.call('ZCARD', webhooks)
if before == redis.call('ZREM', webhooks, id) then redis.call('ZREM', tenants, tenant) end
return { 'deleted' }
