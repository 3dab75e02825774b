#!lua flags=allow-oom
-- Takes deliveries of a webhook that are due. Each is due again after a while, when whoever took it has died. A repeat
-- takes what it took before, as far as nothing has come of it since: all of a claim's deliveries are due again at one
-- time, which the webhook keeps with the token.
-- KEYS: 1 prefix:{tag}:hook:tenant:id  2 prefix:{tag}:hook:tenant:id:due  3 prefix:{tag}:hook:tenant:id:pending
--         as in webhook-create.lua
-- ARGV: 1 the call's deadline (ms)  2 how many at most  3 after how long each is due again (ms)  4 the claim's token
-- Replies: {'claimed', now, first, url, generation, old_until, id, delivery, …}
--                     first: when the first of all that are left is due, or empty; old_until as webhook-create.lua has
--                     it, or empty; a delivery as webhook-plan.lua has it
--          {'gone'}   there is no such webhook
--@include late
local key, due, pending, max, lease, token = KEYS[1], KEYS[2], KEYS[3], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local webhook = redis.call('HMGET', key, 'url', 'generation', 'old_until', 'claim', 'claim_due')
local isRepeat = webhook[4] == token
local again = isRepeat and webhook[5] or ms(now + lease)
-- By how much the clock was set back since the last claim, at least: by then its deliveries would be due again in
-- `lease` or less.
local back = not isRepeat and webhook[5] and webhook[5] - lease - now or 0

if not webhook[1] then return { 'gone' } end

-- Nothing is to wait for the clock to be where it was; less than a second isn't worth moving thousands for. It is due a
-- millisecond before what this claim takes, so that no repeat takes both.
if back >= 1000 then
  back = back + 1
  local waiting = redis.call('ZRANGE', due, '(' .. ms(now + lease), '+inf', 'BYSCORE', 'WITHSCORES')
  for at = 1, #waiting, 2 do redis.call('ZADD', due, ms(waiting[at + 1] - back), waiting[at]) end
  redis.call('HSET', key, 'claim_due', ms(webhook[5] - back))
end
local ids = redis.call('ZRANGE', due, isRepeat and again or '-inf', isRepeat and again or ms(now),
  'BYSCORE', 'LIMIT', 0, max)
local claimed = { 'claimed', ms(now), '', webhook[1], webhook[2], webhook[3] or '' }
for _, id in ipairs(ids) do
  if not isRepeat then redis.call('ZADD', due, again, id) end
  claimed[#claimed + 1], claimed[#claimed + 2] = id, redis.call('HGET', pending, id)
end
if #ids > 0 and not isRepeat then redis.call('HSET', key, 'claim', token, 'claim_due', again) end
local first = redis.call('ZRANGE', due, 0, 0, 'WITHSCORES')
claimed[3] = first[2] or ''
return claimed
