#!lua flags=allow-oom
-- Notes how an attempt to deliver went. The last of too many failures disables the webhook, which its tenant's feed
-- tells in the same step.
-- KEYS: 1 prefix:{tag}:hook:tenant:id  2 prefix:{tag}:hook:tenant:id:due  3 prefix:{tag}:hook:tenant:id:pending
--       4 prefix:{tag}:hook:tenant:id:delivered  5 prefix:{tag}:hook:tenant:id:failed  6 prefix:{tag}:e:tenant
--         all as in webhook-create.lua
-- ARGV: 1 the call's deadline (ms)  2 the webhook's id  3 the delivery's id  4 how often it was tried before
--       5 delivered, again, failed, or gone: the receiver wants no more  6 the status of the answer; - for none
--       7 the error; - for none  8 after how long it is tried again (ms)
--       9 after how long without a success the webhook is disabled (ms)  10 for how long events are kept (ms)
-- Replies: {'noted'}
--          {'disabled', reason}  noted, and the webhook is disabled: gone or failing
--          {'unknown'}           there is no such attempt any more; nothing changed
-- A delivery that is over: its id, and what webhook-plan.lua has of one.
--@include late
local key, due, pending, feed = KEYS[1], KEYS[2], KEYS[3], KEYS[6]
local webhook, id, outcome, retention = ARGV[2], ARGV[3], ARGV[5], tonumber(ARGV[10])
local found = redis.call('HMGET', key, 'created', 'failing', 'disabled')
local tried, text = string.match(redis.call('HGET', pending, id) or '', '^(%d+) %S+ %S+ %S+ (.+)$')

if not found[1] or tried ~= ARGV[4] then return { 'unknown' } end

local attempt = ms(tried + 1) .. ' ' .. ARGV[6] .. ' ' .. ARGV[7] .. ' ' .. ms(now) .. ' ' .. text
local reason
if outcome == 'delivered' then
  if found[2] then redis.call('HDEL', key, 'failing') end
else
  if not found[2] then redis.call('HSET', key, 'failing', ms(now)) end
  if not found[3] then
    reason = outcome == 'gone' and 'gone' or found[2] and now - found[2] >= tonumber(ARGV[9]) and 'failing'
  end
end
if outcome == 'again' and not reason then
  redis.call('HSET', pending, id, attempt)
  redis.call('ZADD', due, ms(now + ARGV[8]), id)
else
  local over = outcome == 'delivered' and KEYS[4] or KEYS[5]
  -- With a reason both are deleted below, once.
  if not reason then
    redis.call('HDEL', pending, id)
    redis.call('ZREM', due, id)
  end
  redis.call('RPUSH', over, id .. ' ' .. attempt)
  redis.call('LTRIM', over, -100, -1)
end
if reason then
  redis.call('HSET', key, 'disabled', reason)
  redis.call('HDEL', key, 'replay', 'replay_to')
  redis.call('DEL', due, pending)
  local newest = redis.call('XADD', feed, '*', 'e', 'webhook.disabled ' .. webhook .. ' ' .. reason)
  redis.call('PEXPIREAT', feed, ms(now + retention + 3600000))
  redis.pcall('SPUBLISH', feed, newest)
end
return { reason and 'disabled' or 'noted', reason }
