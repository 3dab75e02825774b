#!lua flags=no-writes
-- Reads a webhook's deliveries: first those that are over and when the pending ones are due, then, asked again, what
-- these are.
-- KEYS: 1 prefix:{tag}:hook:tenant:id:due        its deliveries by when each is tried next
--       2 prefix:{tag}:hook:tenant:id:pending    what they are
--       3 prefix:{tag}:hook:tenant:id:delivered  the newest that were delivered
--       4 prefix:{tag}:hook:tenant:id:failed     the newest that could not be
-- ARGV: 1 the ids of pending ones, parted by spaces; empty the first time
-- Replies: {'listed', due, delivered, failed}  due: id, when, …; the others as webhook-tried.lua has them, the newest
--                                              last
--          {'found', deliveries, due}           as webhook-plan.lua has them, and when each is due; nil for one that is
--                                               over by now
-- When it is due is read again with what it is: an attempt may have ended between the two calls.
local ids = {}
for id in string.gmatch(ARGV[1], '%S+') do ids[#ids + 1] = id end
if ids[1] then
  local due = {}
  for at, id in ipairs(ids) do due[at] = redis.call('ZSCORE', KEYS[1], id) end
  return { 'found', redis.call('HMGET', KEYS[2], unpack(ids)), due }
end
return { 'listed', redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES'),
  redis.call('LRANGE', KEYS[3], 0, -1), redis.call('LRANGE', KEYS[4], 0, -1) }
