-- How many are pending in an inbox's partition, by its list: what can be caught, is delayed, is blocked by others, or
-- waits for a person. What is blocked or waits counts until its deadline, as in lib/counts.lua: where only replicas of
-- an older version ran, or none, until it was gone, its entry stays.
local function pendingIn(inbox, now)
  return redis.call('ZCARD', inbox) + redis.call('ZCARD', inbox .. ':delayed') +
    redis.call('ZCOUNT', inbox .. ':blocked', '(' .. ms(now), '+inf') +
    redis.call('ZCOUNT', inbox .. ':waiting', '(' .. ms(now), '+inf')
end
-- The reply to a pass that would be too many; nil if it wouldn't. In a Cluster the options say how many are pending in
-- the other partition.
local function unpassable(inbox, other, options, settings, now)
  local limit = tonumber(string.match(settings, '^%d %d+ (%d+)'))
  local elsewhere = other and pendingIn(other, now) or string.match(options, ' f(%S+)') or 0
  if limit > 0 and elsewhere == '?' then return { 'elsewhere' } end
  if limit > 0 and pendingIn(inbox, now) + elsewhere >= limit then return { 'inbox_full' } end
end
