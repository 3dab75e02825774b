-- Has each handoff that waits for a person in the list where it is looked for (waitingList in lib/inbox.lua), with word
-- H to say so. `homes`: the tags of the tenants' home partitions, as tenant:tag, each between spaces.
local function indexWaiting(key, homes, now)
  local record, extra = unpack(redis.call('HMGET', key, 's', 'x'))
  if not string.find(record or '', '^[2-5]?:?%l+ waiting ') then return end
  local member, words = string.match(key, MEMBER), string.gsub(extra or '', ' H%S+', '')
  --@if oneredis
  local start = ' ' .. string.match(member, '^[^:]+:')
  local from = select(2, string.find(homes, start, 1, true))
  local home = from and string.sub(homes, from + 1, from + 3)
  if home and home ~= string.match(member, ':(...)') then words = words .. ' H' .. home end
  --@end
  local status, _, created, expires = string.match(record, RECORD)
  local list, own = waitingList(key, member, words), waitingList(key, member)
  local isPending = status == 'pending' and now < tonumber(expires)
  local isListed = isPending and isHere(key, list) and redis.call('ZSCORE', list, member)
  if words ~= (extra or '') then redis.call('HSET', key, 's', extra and record or '2:' .. record, 'x', words) end
  if isPending and not isListed then
    redis.call('ZADD', list, created, member)
    redis.call('ZADD', string.match(list, '^[^}]*}:') .. 'inboxes', 0, string.match(member, '^[^:]+:'))
    redis.pcall('SPUBLISH', list, 'pending')
  end
  if list ~= own then redis.call('ZREM', own, member) end
end
local function indexAllWaiting(homes, now)
  for _, key in ipairs(KEYS) do indexWaiting(key, homes, now) end
end
