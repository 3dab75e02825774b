#!lua flags=allow-oom
-- Claims deliveries of a webhook that are due. Each is due again after a while, in case its replica dies. A repeat of
-- the call claims the same deliveries, except those that were tried since: all deliveries of a claim are due again at
-- one time, which the webhook keeps with the token.
-- KEYS: 1 prefix:{tag}:hook:tenant:id  2 prefix:{tag}:hook:tenant:id:due  3 prefix:{tag}:hook:tenant:id:pending
--       4 prefix:{tag}:hook:tenant:id:summarised  only of what people get   all as in webhook-create.lua
-- ARGV: 1 the call's deadline (ms)  2 how many at most  3 after how long each is due again (ms)  4 the claim's token
--       5 how many messages to people may begin within a minute; absent for what programs get
-- Replies: {'claimed', now, first, url, generation, old_until, id, delivery, …}
--                     first: when the first of all that are left is due, or empty; old_until as webhook-create.lua has
--                     it, or empty; a delivery as webhook-plan.lua has it
--          {'gone'}   there is no such webhook
-- What people get beyond that is counted in a summary (lib/summary.lua): a delivery that is due when the oldest message
-- of the minute is a minute old.
--@include late summary
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
local limit = not isRepeat and tonumber(ARGV[5])
-- A burst that is counted takes few calls.
local ids = redis.call('ZRANGE', due, isRepeat and again or '-inf', isRepeat and again or ms(now),
  'BYSCORE', 'LIMIT', 0, limit and max + 200 or max)
local taken = ids
if limit and ids[1] then
  local sent = redis.call('HMGET', key, 'sent', 'summary')
  local times, summary = lastMinute(sent[1], now), sent[2]
  local before = summary and redis.call('HGET', pending, summary)
  local counts, isCounted = countsOf(before), false
  taken = {}
  for _, id in ipairs(ids) do
    if #taken == max + 0 then break end
    local delivery = redis.call('HGET', pending, id)
    -- A message counts when it is tried first. A test never does.
    local isNew = delivery and string.sub(delivery, 1, 2) == '0 ' and not string.find(id, '^test_') and
      (id == summary or not string.find(id, '^summary_'))
    if not isNew or #times < limit then
      if isNew then times[#times + 1] = ms(now) end
      if id == summary then summary, before, counts = false, false, {} end
      taken[#taken + 1] = id
    elseif id == summary then
      redis.call('ZADD', due, ms(times[1] + 60000), id)
    else
      local text = string.match(delivery, '^0 %S+ %S+ %S+ (.+)$')
      countGroup(counts, groupOf(text), 1)
      isCounted = true
      redis.call('HDEL', pending, id)
      redis.call('ZREM', due, id)
      redis.call('RPUSH', KEYS[4], id .. ' 0 - - ' .. ms(now) .. ' ' .. text)
    end
  end
  if isCounted then
    if not before then summary = 'summary_' .. ms(times[1] + 60000) end
    redis.call('HSET', pending, summary,
      '0 - - - webhook.summary ' .. string.match(key, '[^:]+$') .. summaryText(counts))
    redis.call('ZADD', due, ms(times[1] + 60000), summary)
    redis.call('LTRIM', KEYS[4], -100, -1)
  end
  local all = ''
  for _, time in ipairs(times) do all = all .. time .. ' ' end
  redis.call('HSET', key, 'sent', all, 'summary', summary or '')
end
local claimed = { 'claimed', ms(now), '', webhook[1], webhook[2], webhook[3] or '' }
for _, id in ipairs(taken) do
  if not isRepeat then redis.call('ZADD', due, again, id) end
  claimed[#claimed + 1], claimed[#claimed + 2] = id, redis.call('HGET', pending, id)
end
if #taken > 0 and not isRepeat then redis.call('HSET', key, 'claim', token, 'claim_due', again) end
local first = redis.call('ZRANGE', due, 0, 0, 'WITHSCORES')
claimed[3] = first[2] or ''
return claimed
