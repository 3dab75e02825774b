-- What has ended: a partition's list of each tenant, prefix:{tag}:ended:tenant, by when the end was written (ms). In it
-- is each attempt that was passed with an inbox or with labels.
-- The list that a handoff enters with its end; nil if it enters none, as while Redis is full. Call it before the first
-- write (isHere).
--@if full
local function openEnded() end
--@else
--@if ended
local function openEnded(key, member, extra)
  if not extra or not (string.find(extra, ' t', 1, true) or string.find(extra, ' j', 1, true)) then return nil end
  local list = string.sub(key, 1, #key - #member - 2) .. 'ended:' ..
    string.sub(member, 1, string.find(member, ':', 1, true) - 1)
  --@if oneredis
  --@else
  isHere(key, list)
  --@end
  return list
end
--@else
local function openEnded() end
--@end
--@end
-- A handoff that has ended enters a list, by a time as text (ms). Its entry outlives it for a while: each hundredth one
-- that comes removes up to 400 of those, so a list that is never at rest stays bounded. The one that comes stays, also
-- if it ended as long ago, before the sweep saw it, and it comes first: so the list is never empty (lib/inbox.lua). The
-- list's TTL is put off by LOOK more than it has to be, so most needn't see to it.
local function enterOver(list, member, time, now)
  redis.call('ZADD', list, time, member)
  if redis.call('PEXPIRETIME', list) < now + RETENTION then
    redis.call('PEXPIREAT', list, ms(now + RETENTION + LOOK))
  end
  if string.sub(time, -2) == '00' then
    local gone = redis.call('ZCOUNT', list, '-inf', '(' .. ms(math.min(now - RETENTION - 1000, time)))
    if gone > 0 then redis.call('ZREMRANGEBYRANK', list, 0, math.min(gone, 400) - 1) end
  end
end
