#!lua flags=allow-oom
-- Notes how an attempt to deliver a callback went. What is over goes; its handoff, while it is there, counts it.
-- KEYS: 1 prefix:{tag}:h:tenant:id   the handoff  2 prefix:{tag}:calls  3 prefix:{tag}:calls:tenant
--       4 prefix:{tag}:call:tenant:id   the callback (lib/events.lua)
-- ARGV: 1 the call's deadline (ms)  2 the tenant  3 the callback's id  4 how often it was tried before
--       5 delivered, again or failed  6 the status of the answer; - for none  7 the error; - for none
--       8 after how long it is tried again (ms)
-- Replies: {'noted'}
--          {'unknown'}   there is no such attempt any more; nothing changed
--@include late
local key, calls, due, call, tenant, id, outcome = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[2], ARGV[3], ARGV[5]
redis.call('EXISTS', call, key, calls, due)
local tried, created = unpack(redis.call('HMGET', call, 'n', 'c'))
if not tried or string.match(tried, '^%d+') ~= ARGV[4] then return { 'unknown' } end

local how = ARGV[6] .. ' ' .. ARGV[7] .. ' ' .. ms(now)
local record, counts = unpack(redis.call('HMGET', key, 's', 'O'))
-- An id can come back with another handoff.
if counts and string.match(record, '^[2-5]?:?%l+ %S+ (%d+)') == created then
  local pending, delivered, failed, number = string.match(counts, '^(%d+) (%d+) (%d+) %S+ %S+ %S+ (%d+)$')
  if outcome ~= 'again' then pending = math.max(0, pending - 1) end
  if outcome == 'delivered' then delivered = delivered + 1 end
  if outcome == 'failed' then failed = failed + 1 end
  redis.call('HSET', key, 'O',
    ms(pending) .. ' ' .. ms(delivered) .. ' ' .. ms(failed) .. ' ' .. how .. ' ' .. number)
end
if outcome == 'again' then
  redis.call('HSET', call, 'n', ms(tonumber(ARGV[4]) + 1) .. ' ' .. how)
  redis.call('ZADD', due, ms(now + ARGV[8]), id)
end
local left, first = redis.call('ZRANGE', due, 0, 1, 'WITHSCORES'), nil
for at = 1, #left, 2 do
  if not first and (outcome == 'again' or left[at] ~= id) then first = left[at + 1] end
end
if first then redis.call('ZADD', calls, first, tenant) else redis.call('ZREM', calls, tenant) end
if outcome ~= 'again' then
  redis.call('ZREM', due, id)
  redis.call('DEL', call)
end
return { 'noted' }
