#!lua flags=allow-oom
-- Takes or renews a lease that one holder has at a time. Losing it is safe: the sweep may run twice.
-- KEYS: 1 prefix:{tag}:sweeps or prefix:{tag}:s:digest   the replica that sweeps; who came back from an issuer
-- ARGV: 1 the call's deadline (ms)  2 the holder  3 for how long (ms)
-- Replies: {'held'}   the holder has it from now on
--          {'taken'}  another does
-- The value is the holder, a space, and when the lease ends (ms). The key outlives it: replicas of 0.1.0 see only
-- whether the key is there, so they don't get what a newer one was late to renew, and leave out of webhooks what they
-- don't know.
--@include late
local key, replica, duration = KEYS[1], ARGV[2], tonumber(ARGV[3])
local holder, ends = string.match(redis.call('GET', key) or '', '^(%S+) (%d+)$')

-- A lease that ends later than a new one would was taken before the clock was set back. Its TTL would keep it too long.
if holder and holder ~= replica and now < tonumber(ends) and tonumber(ends) <= now + duration then
  return { 'taken' }
end

redis.call('SET', key, replica .. ' ' .. ms(now + duration), 'PX', ms(duration + 5000))
return { 'held' }
