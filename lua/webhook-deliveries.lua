#!lua flags=no-writes
-- Reads a webhook's deliveries: first those that are over and when the pending ones are due, then, asked again, what
-- these are.
-- KEYS: 1 prefix:{tag}:hook:tenant:id:due  2 prefix:{tag}:hook:tenant:id:pending
--       3 prefix:{tag}:hook:tenant:id:delivered  4 prefix:{tag}:hook:tenant:id:failed
--       5 prefix:{tag}:hook:tenant:id:summarised   as in webhook-create.lua
-- ARGV: 1 the ids of pending ones, parted by spaces; empty the first time
-- Replies: {'listed', due, delivered, failed, summarised}  due: id, when, …; the others as webhook-tried.lua has them,
--                        newest last
--          {'found', deliveries, due}  as webhook-plan.lua has them, and when each is due, since an attempt may have
--                        ended between the two calls; nil for one that is over by now
local ids = {}
for id in string.gmatch(ARGV[1], '%S+') do ids[#ids + 1] = id end
if ids[1] then
  local due = {}
  for at, id in ipairs(ids) do due[at] = redis.call('ZSCORE', KEYS[1], id) end
  return { 'found', redis.call('HMGET', KEYS[2], unpack(ids)), due }
end
return { 'listed', redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES'),
  redis.call('LRANGE', KEYS[3], 0, -1), redis.call('LRANGE', KEYS[4], 0, -1),
  redis.call('LRANGE', KEYS[5], 0, -1) }
