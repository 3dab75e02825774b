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
-- What an inbox has in one partition, by its list: how many are pending (can be caught), waiting (for a person),
-- delayed, caught, failed; oldest: when the oldest pending one entered (microseconds), nil if there is none; its
-- settings: paused, max_caught, max_pending, each 0 if it isn't set; and blocked, how many come after others. With
-- mixed priorities, oldest is that of the first 1,000 in the order in which they are caught.
local function oldestIn(inbox)
  local oldest, from, size = false, 0, 10
  while from < 1000 do
    local entries = redis.call('ZRANGE', inbox, from, from + size - 1, 'WITHSCORES')
    for i = 2, #entries, 2 do
      local turn = tonumber(entries[i])
      -- Every later entry entered at its turn's time or after it.
      if oldest and turn >= oldest then return oldest end
      local entered = turn - turn % 10 + turn % 10 * MINUTE
      oldest = math.min(oldest or entered, entered)
    end
    if #entries < 2 * size then break end
    from = from + size
    size = 9 * from
  end
  return oldest
end
local function countsOf(inbox, retention, now)
  -- While the slot moves, a list on the other node would be empty here: Redis refuses to look for several keys of which
  -- some are missing.
  redis.call('EXISTS', inbox, inbox .. ':settings', inbox .. ':waiting', inbox .. ':delayed', inbox .. ':caught',
    inbox .. ':failed', inbox .. ':blocked')
  local paused, max_caught, max_pending =
    string.match(redis.call('GET', inbox .. ':settings') or '0 0 0', '^(%d) (%d+) (%d+)')
  return {
    redis.call('ZCARD', inbox),
    redis.call('ZCOUNT', inbox .. ':waiting', '(' .. ms(now), '+inf'),
    redis.call('ZCARD', inbox .. ':delayed'),
    redis.call('SCARD', inbox .. ':caught'),
    redis.call('ZCOUNT', inbox .. ':failed', ms(now - retention), '+inf'),
    oldestIn(inbox), paused, max_caught, max_pending,
    redis.call('ZCOUNT', inbox .. ':blocked', '(' .. ms(now), '+inf')
  }
end
-- Names in each list, with the counts if there is a retention.
local function readNames(first, last, limit, retention, now)
  local lists = {}
  for at, index in ipairs(KEYS) do
    local names = redis.call('ZRANGE', index, first, last, 'BYLEX', 'LIMIT', 0, limit)
    local partition = string.sub(index, 1, -8)
    for i, name in ipairs(retention == '' and {} or names) do
      local tenant = string.match(name, '^(.*):$')
      if tenant then redis.call('EXISTS', index, partition .. 'w:' .. tenant) end
      names[i] = tenant and { name, redis.call('ZCARD', partition .. 'w:' .. tenant) } or
        { name, unpack(countsOf(partition .. 'i:' .. name, retention, now), 1, 10) }
    end
    lists[at] = names
  end
  return lists
end
