-- While a slot moves, a key may be on the other node: it isn't found here, and a write would make another one. So this
-- asks for two keys together. If only one is here, Redis refuses the command, and the service calls the script again.
-- `key` must exist here, and nothing may be written before. Nor may a script use a key again that it emptied: Redis
-- would look for that on the other node too, and the script would break off half done.
local function isHere(key, other)
  return redis.call('EXISTS', key, other) == 2
end
-- An inbox in one partition: its list prefix:{tag}:i:tenant:inbox (enterInbox), and beside it, with the same beginning:
-- `:delayed`, what can be caught later, by when; `:waiting`, what waits for a person, by when it expires; `:blocked`
-- (lib/after.lua); `:caught`, a set of what is caught; `:failed` (lib/successor.lua); `:places` (lib/taking.lua); and
-- `:settings`, a string of what operators set: paused (1, or 0), max_caught, max_pending (0 for none), and when they
-- were set (microseconds). Most inboxes have none. An inbox has two partitions: its own, and its tenant's home, where
-- what a person decides on is. prefix:{tag}:inboxes names those that have something in the partition, as tenant:inbox,
-- all with the score 0; and as tenant: those tenants of which something waits for a person. Names leave it later
-- (inbox-tidy.lua).
-- The list of a handoff's inbox, in the handoff's own partition; nil if it is for none. By field x.
local function inboxOf(key, member, extra)
  local inbox = extra and string.match(extra, ' t(%S+)')
  return inbox and string.sub(key, 1, #key - #member - 2) .. 'i:' .. string.match(member, '^[^:]+:') .. inbox
end
-- Is it for none, or for one of the inboxes that the key is limited to? They stand between spaces; nil for any.
local function isAddressed(extra, inboxes)
  local inbox = inboxes and extra and string.match(extra, ' t(%S+)')
  return not inbox or string.find(inboxes, ' ' .. inbox .. ' ', 1, true)
end
-- A removal from a list that is on the other node would remove nothing.
local function leaveList(key, list, member)
  if redis.call('ZREM', list, member) == 0 then isHere(key, list) end
end
-- What was delayed may be in either list until the sweep has moved it.
local function leavePending(key, inbox, member, extra)
  if redis.call('ZREM', inbox, member) == 1 then return end
  leaveList(key, string.find(extra, ' a', 1, true) and inbox .. ':delayed' or inbox, member)
end
-- An inbox's list is a sorted set of what can be caught from it now. The score is the turn: when a handoff entered, in
-- microseconds, less a minute for each step of priority. The last digit is that priority, so the list alone tells when
-- something entered; two that enter within the same 10 microseconds have no order. A score is exact below 2^53: until
-- the year 2255.
local MINUTE = 60000000
local function nameInbox(inbox)
  local partition, name = string.match(inbox, '^([^}]*}:)i:(.*)$')
  redis.call('ZADD', partition .. 'inboxes', 0, name)
end
local function enterInbox(inbox, member, extra, micros)
  local priority = tonumber(string.match(extra, ' u(%d)') or 0)
  redis.call('ZADD', inbox, string.format('%d', micros - micros % 10 + priority - priority * MINUTE), member)
  -- While others are in the list, it has its name: all that enter see to it, and now and then one of them does.
  if micros % 32 == 0 or redis.call('ZCARD', inbox) == 1 then nameInbox(inbox) end
  redis.pcall('SPUBLISH', inbox, 'passed')
end
-- It enters what it belongs to: what waits for a person, where it is undecided until then; what comes after others,
-- where it is blocked, at the most until then; what can be caught later, where it is available only then; or the
-- inbox's list. The times (ms) may be nil.
local function enterPart(inbox, member, extra, micros, undecided, available, blocked)
  if not undecided and not available and not blocked then return enterInbox(inbox, member, extra, micros) end
  redis.call('ZADD', inbox .. (undecided and ':waiting' or blocked and ':blocked' or ':delayed'),
    undecided or blocked or available, member)
  nameInbox(inbox)
end
-- isHere for all that enters and leaves an inbox.
local function refuseWhileMoving(key, inbox)
  local partition = string.match(inbox, '^[^}]*}:')
  redis.call('EXISTS', key, inbox, inbox .. ':delayed', inbox .. ':blocked', inbox .. ':caught', partition .. 'inboxes')
end
-- Does it wait for others that it comes after (lib/after.lua)?
local function isBlocked(extra)
  local open = extra and string.match(extra, ' A%l/(%d+)')
  return open and open ~= '0'
end
-- The handoff enters its inbox if its delay is over. One that a person approved after that, or that was blocked until
-- later, entered then, and keeps its turn.
local function enterOnceAvailable(key, member, extra, now)
  local available = extra and string.match(extra, ' a(%d+)')
  local inbox = available and now >= tonumber(available) and inboxOf(key, member, extra)
  if inbox then
    local decided = string.match(redis.call('HGET', key, 'd') or '', '^%d+')
    local released = string.match(extra, ' A%l/0/%d+/(%d+)')
    if math.max(decided or 0, released or 0) >= tonumber(available) then return end
    refuseWhileMoving(key, inbox)
    redis.call('ZREM', inbox .. ':delayed', member)
    enterInbox(inbox, member, extra, available * 1000)
  end
end
-- A handoff that ends while it is pending leaves its inbox.
local function leaveInbox(key, member, extra, approval)
  local inbox = inboxOf(key, member, extra)
  if not inbox then return end
  if approval == 'waiting' then return leaveList(key, inbox .. ':waiting', member) end
  if isBlocked(extra) then return leaveList(key, inbox .. ':blocked', member) end
  leavePending(key, inbox, member, extra)
end
-- How many are pending in an inbox's partition, by its list. What is blocked, or waits for a person, counts until its
-- deadline: where only replicas of an older version ran, or none, until it was gone, its entry stays.
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
-- When the oldest entry of an inbox's list entered, of the first 1,000 in the order in which they are caught.
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
-- What an inbox has in one partition, by its list: how many are pending (can be caught), waiting (for a person),
-- delayed, caught, failed; oldest: when the oldest pending one entered (microseconds), nil if there is none; its
-- settings: paused, max_caught, max_pending, each 0 if it isn't set; and blocked, how many come after others.
local function countsOf(inbox, retention, now)
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
