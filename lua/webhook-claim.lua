#!lua flags=allow-oom
-- Takes deliveries of a webhook that are due. Each is due again after a while, when whoever took it has died.
-- KEYS: 1 prefix:{tag}:hook:tenant:id          the webhook
--       2 prefix:{tag}:hook:tenant:id:due      its deliveries by when each is tried next
--       3 prefix:{tag}:hook:tenant:id:pending  what they are
-- ARGV: 1 the call's deadline (ms)  2 how many at most  3 after how long each is due again (ms)
-- Replies: {'claimed', now, first, url, generation, old_until, id, delivery, …}
--                     first: when the first of all that are left is due, or empty; old_until as webhook-create.lua has it, or empty;
--                     a delivery as webhook-plan.lua has it
--          {'gone'}   there is no such webhook
--          {'late'}   the call's deadline is over; nothing changed
local key, due, pending, lease = KEYS[1], KEYS[2], KEYS[3], tonumber(ARGV[3])
local now = clock()
local webhook = redis.call('HMGET', key, 'url', 'generation', 'old_until')
local ids = redis.call('ZRANGE', due, '-inf', ms(now), 'BYSCORE', 'LIMIT', 0, ARGV[2])

if late(ARGV[1], now) then return { 'late' } end
if not webhook[1] then return { 'gone' } end

local claimed = { 'claimed', ms(now), '', webhook[1], webhook[2], webhook[3] or '' }
for _, id in ipairs(ids) do
  redis.call('ZADD', due, ms(now + lease), id)
  claimed[#claimed + 1], claimed[#claimed + 2] = id, redis.call('HGET', pending, id)
end
local first = redis.call('ZRANGE', due, 0, 0, 'WITHSCORES')
claimed[3] = first[2] or ''
return claimed
