-- How many are pending in an inbox's partition, by its list: what can be caught, is delayed, is blocked by others, or
-- waits for a person.
local function pendingIn(inbox)
  return redis.call('ZCARD', inbox) + redis.call('ZCARD', inbox .. ':delayed') +
    redis.call('ZCARD', inbox .. ':blocked') + redis.call('ZCARD', inbox .. ':waiting')
end
-- The reply to a pass that would be too many; nil if it wouldn't. In a Cluster the options say how many are pending in
-- the other partition.
local function unpassable(inbox, other, options, settings)
  local limit = tonumber(string.match(settings, '^%d %d+ (%d+)'))
  local elsewhere = other and pendingIn(other) or string.match(options, ' f(%S+)') or 0
  if limit > 0 and elsewhere == '?' then return { 'elsewhere' } end
  if limit > 0 and pendingIn(inbox) + elsewhere >= limit then return { 'inbox_full' } end
end
