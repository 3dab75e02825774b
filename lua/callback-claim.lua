#!lua flags=allow-oom
-- Takes callbacks of a tenant and a partition that are due (lib/events.lua). Each is due again after a while, when
-- the replica that took it has died.
-- KEYS: 1 prefix:{tag}:calls   the tenants that have some here  2 prefix:{tag}:calls:tenant   the tenant's
-- ARGV: 1 the call's deadline (ms)  2 the tenant  3 how many at most  4 after how long each is due again (ms)
--       5 prefix:{tag}:call:tenant:
-- Replies: {'claimed', now, first, id, target, text, passed, noted, tried, result, omitted, origin, …}  first: when the
--                     first of all that are left is due, or empty; the others are fields o, e, c, t, n, r, R and x of
--                     each; together they have a megabyte at most, or are one
--@include late
local calls, due, tenant, lease, prefix = KEYS[1], KEYS[2], ARGV[2], ARGV[4], ARGV[5]
local ids, bytes, gone = redis.call('ZRANGE', due, '-inf', ms(now), 'BYSCORE', 'LIMIT', 0, ARGV[3]), 0, {}
local claimed, taken = { 'claimed', ms(now), '' }, {}
-- While the slot moves, either may be on the other node (isHere in lib/inbox.lua), as may what is read below: all of it
-- comes before the first write.
redis.call('EXISTS', due, calls)
for _, id in ipairs(ids) do
  local found = redis.call('HMGET', prefix .. id, 'o', 'e', 'c', 't', 'n', 'r', 'R', 'x')
  local size = #(found[6] or '') + 500
  if bytes > 0 and bytes + size > 1048576 then break end
  if found[1] then
    bytes = bytes + size
    claimed[#claimed + 1] = id
    for at = 1, 8 do claimed[#claimed + 1] = found[at] end
    taken[#taken + 1], taken[#taken + 2] = ms(now + lease), id
  else
    -- Alone it would look gone where its slot moves to, while it is still on the other node.
    redis.call('EXISTS', due, prefix .. id)
    gone[#gone + 1], gone[id] = id, true
  end
end
if #taken > 0 then redis.call('ZADD', due, unpack(taken)) end
-- What is gone leaves last: nothing may look for a list that it emptied.
local left, first = redis.call('ZRANGE', due, 0, #gone, 'WITHSCORES'), nil
for at = 1, #left, 2 do
  if not first and not gone[left[at]] then first = left[at + 1] end
end
if first then redis.call('ZADD', calls, first, tenant) else redis.call('ZREM', calls, tenant) end
if #gone > 0 then redis.call('ZREM', due, unpack(gone)) end
claimed[3] = first or ''
return claimed
