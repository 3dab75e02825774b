-- While a slot moves, a key may be on the other node: it isn't found here, and a write would make another one. So this
-- asks for two keys together. If only one is here, Redis refuses the command, and the service calls the script again.
-- `key` must exist here, and nothing may be written before. Nor may a script use a key again that it emptied: Redis
-- would look for that on the other node too, and the script would break off half done.
local function isHere(key, other)
  return redis.call('EXISTS', key, other) == 2
end
-- What waits for a person, prefix:{tag}:w:tenant, by when it was passed: in a Cluster in the handoff's own partition.
-- On one Redis the list is in the tenant's home partition, whose tag is word H of field x, unless it is the own one.
local function waitingList(key, member, extra)
  local partition = string.sub(key, 1, #key - #member - 2)
  --@if oneredis
  local home = extra and string.match(extra, ' H(%S+)')
  if home then partition = string.gsub(partition, '{.*}', '{' .. home .. '}') end
  --@end
  return partition .. 'w:' .. string.match(member, '^[^:]+')
end
-- An inbox: its list prefix:{tag}:i:tenant:inbox (enterInbox), and beside it, with the same beginning:
-- `:delayed`, handoffs that can be caught later, by when; `:waiting`, those that wait for a person, by when they
-- expire; `:blocked` (lib/after.lua); `:caught`, a set of the caught ones; `:failed` (lib/successor.lua); and
-- `:settings`, a string: paused (1, or 0), max_caught, max_pending (0 for none), and when they were set (microseconds).
-- Most inboxes have no settings. Version 0.2.0 kept in the tenant's home partition what a person decides on, in the
-- same lists: what it left there goes on there. prefix:{tag}:inboxes names, all with the score 0, the inboxes that have
-- something in the partition, as tenant:inbox, and the tenants that have a list of what waits for a person there, as
-- tenant: (with the colon). Names leave it later (inbox-tidy.lua).
-- The list of a handoff's inbox, in the handoff's own partition, by field x; nil if the handoff is for no inbox.
local function inboxOf(key, member, extra)
  local inbox = extra and string.match(extra, ' t(%S+)')
  return inbox and string.sub(key, 1, #key - #member - 2) .. 'i:' .. string.match(member, '^[^:]+:') .. inbox
end
-- Is it for none, or for one of the inboxes that the key is limited to? They stand between spaces; nil for any.
local function isAddressed(extra, inboxes)
  local inbox = inboxes and extra and string.match(extra, ' t(%S+)')
  return not inbox or string.find(inboxes, ' ' .. inbox .. ' ', 1, true)
end
-- An inbox's list is a sorted set of the handoffs that can be caught from it now. The score is the position: when the
-- handoff entered, in microseconds, less a minute for each step of priority. The last digit is that priority, so the
-- list alone says when a handoff entered; two that enter within the same 10 microseconds have no order. A score is
-- exact below 2^53: until the year 2255. What has a group enters that instead (lib/groups.lua), which this does without
-- that library's functions: each pass to an inbox would make them.
local MINUTE = 60000000
local function nameInbox(inbox)
  local partition, name = string.match(inbox, '^([^}]*}:)i:(.*)$')
  redis.call('ZADD', partition .. 'inboxes', 0, name)
end
local function enterInbox(inbox, member, extra, micros)
  local priority, group = tonumber(string.match(extra, ' u(%d)') or 0), string.match(extra, ' G(%S+)')
  local position, groups, isFirst = micros - micros % 10 + priority - priority * MINUTE, inbox .. ':groups', nil
  if group then
    redis.call('ZADD', inbox .. ':grouped', string.format('%d', position), member)
    redis.call('ZADD', groups, 0, group .. ' ' .. string.format('%016d', position) .. ' ' .. member)
    isFirst = redis.call('ZLEXCOUNT', groups, '[' .. group .. ' ', '(' .. group .. '!') == 1
  else
    redis.call('ZADD', inbox, string.format('%d', position), member)
    isFirst = redis.call('ZCARD', inbox) == 1
  end
  if isFirst and (group or redis.call('EXISTS', groups) == 1) then
    local turns = inbox .. ':turns'
    local last = redis.call('ZRANGE', turns, -1, -1, 'WITHSCORES')[2]
    local place, comers = math.max((last or 0) + 1, micros), { group or '' }
    -- With the first group of all, what has none begins to take turns too.
    if group and redis.call('ZCARD', groups) == 1 and redis.call('EXISTS', inbox) == 1 then comers = { '', group } end
    for i, comer in ipairs(comers) do redis.call('ZADD', turns, string.format('%d', place + i), comer) end
  end
  -- While others are in the list, it has its name: all that enter see to it, and now and then one of them does.
  if isFirst or micros % 32 == 0 then nameInbox(inbox) end
  redis.pcall('SPUBLISH', inbox, 'passed')
end
-- The handoff enters one list of its inbox: `:waiting` if it is undecided until a time, `:blocked` if it is blocked
-- until a time at most, `:delayed` if it is available only from a time on; else the inbox's own list. The times (ms)
-- may be nil.
local function enterPart(inbox, member, extra, micros, undecided, available, blocked)
  if not undecided and not available and not blocked then return enterInbox(inbox, member, extra, micros) end
  redis.call('ZADD', inbox .. (undecided and ':waiting' or blocked and ':blocked' or ':delayed'),
    undecided or blocked or available, member)
  nameInbox(inbox)
end
--@include groups
-- A removal from a list that is on the other node would remove nothing.
local function leaveList(key, list, member)
  if redis.call('ZREM', list, member) == 0 then isHere(key, list) end
end
-- A handoff whose delay is over may be in either list until the sweep has moved it. Version 0.2.0 knows no groups: its
-- sweep puts what has one into the inbox's own list.
local function leavePending(key, inbox, member, extra)
  local group = groupOf(extra)
  if group then
    redis.call('EXISTS', key, groupKeys(inbox))
    if leaveGroup(inbox, group, member) then return end
  end
  if redis.call('ZREM', inbox, member) == 1 then return end
  leaveList(key, string.find(extra, ' a', 1, true) and inbox .. ':delayed' or inbox, member)
end
-- The payload goes, and its checkpoint with it. Returns the new field x, which the caller writes.
local function dropCheckpoint(key, extra)
  if not extra or not string.find(extra, ' K', 1, true) then return extra end
  redis.call('HDEL', key, 'k')
  return (string.gsub(extra, ' K%S+', ''))
end
-- isHere for all that enters and leaves an inbox.
local function refuseWhileMoving(key, inbox)
  local partition = string.match(inbox, '^[^}]*}:')
  redis.call('EXISTS', key, inbox, inbox .. ':delayed', inbox .. ':blocked', inbox .. ':caught', partition .. 'inboxes',
    groupKeys(inbox))
end
-- Does the handoff wait for others that it comes after (lib/after.lua)?
local function isBlockedRecord(record)
  return string.find(record, '^[35]')
end
local function isBlocked(extra)
  local open = extra and string.match(extra, ' A%l/(%d+)')
  return open and open ~= '0'
end
-- The handoff enters its inbox if its delay is over. A handoff that was approved or unblocked after its delay has
-- entered already, and keeps its position.
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
-- The caller has asked for the keys.
local function enterCaught(inbox, member, extra)
  local group = groupOf(extra)
  redis.call('SADD', inbox .. ':caught', member)
  if group then redis.call('ZADD', inbox .. ':caught-groups', 0, group .. ' ' .. member) end
end
-- A handoff that ends while it is pending leaves its inbox.
local function leaveInbox(key, member, extra, approval)
  local inbox = inboxOf(key, member, extra)
  if not inbox then return end
  if approval == 'waiting' then return leaveList(key, inbox .. ':waiting', member) end
  if isBlocked(extra) then return leaveList(key, inbox .. ':blocked', member) end
  leavePending(key, inbox, member, extra)
end
-- How many handoffs are pending in an inbox's partition. A blocked one, or one that waits for a person, counts until
-- its deadline: its entry stays if it vanished while only replicas of an older version ran, or none.
local function pendingIn(inbox, now)
  return redis.call('ZCARD', inbox) + redis.call('ZCARD', inbox .. ':groups') +
    redis.call('ZCARD', inbox .. ':delayed') +
    redis.call('ZCOUNT', inbox .. ':blocked', '(' .. ms(now), '+inf') +
    redis.call('ZCOUNT', inbox .. ':waiting', '(' .. ms(now), '+inf')
end
-- When the oldest of the first 1,000 entries of an inbox's list entered; false if there are none. With a group, of
-- those of that group.
local function oldestIn(inbox, group)
  local oldest, from, size = false, 0, 10
  while from < 1000 do
    local entries = group and entriesOf(inbox, group, from, size) or
      redis.call('ZRANGE', inbox, from, from + size - 1, 'WITHSCORES')
    for i = 2, #entries, 2 do
      local position = tonumber(entries[i])
      -- Every later entry entered at its position's time or after it.
      if oldest and position >= oldest then return oldest end
      local entered = position - position % 10 + position % 10 * MINUTE
      oldest = math.min(oldest or entered, entered)
    end
    if #entries < 2 * size then break end
    from = from + size
    size = 9 * from
  end
  return oldest
end
-- An inbox's figures in one partition: how many handoffs are pending (can be caught), waiting (for a person), delayed,
-- caught, failed; when the oldest pending one entered (microseconds; nil if there is none); the settings paused,
-- max_caught and max_pending, each 0 if it isn't set; how many are blocked; how many groups have something pending; and
-- the setting max_caught_per_group.
local function countsOf(inbox, retention, now)
  redis.call('EXISTS', inbox, inbox .. ':settings', inbox .. ':waiting', inbox .. ':delayed', inbox .. ':caught',
    inbox .. ':failed', inbox .. ':blocked', inbox .. ':per-group', groupKeys(inbox))
  local paused, max_caught, max_pending =
    string.match(redis.call('GET', inbox .. ':settings') or '0 0 0', '^(%d) (%d+) (%d+)')
  local plain, grouped = redis.call('ZCARD', inbox), redis.call('ZCARD', inbox .. ':grouped')
  local oldest, groups = oldestIn(inbox), plain > 0 and 1 or 0
  if grouped > 0 then
    local first = oldestIn(inbox .. ':grouped')
    oldest, groups = math.min(oldest or first, first), groups + groupsIn(inbox)
  end
  return {
    plain + grouped,
    redis.call('ZCOUNT', inbox .. ':waiting', '(' .. ms(now), '+inf'),
    redis.call('ZCARD', inbox .. ':delayed'),
    redis.call('SCARD', inbox .. ':caught'),
    redis.call('ZCOUNT', inbox .. ':failed', ms(now - retention), '+inf'),
    oldest, paused, max_caught, max_pending,
    redis.call('ZCOUNT', inbox .. ':blocked', '(' .. ms(now), '+inf'), groups, perGroupIn(inbox)
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
        { name, unpack(countsOf(partition .. 'i:' .. name, retention, now), 1, 12) }
    end
    lists[at] = names
  end
  return lists
end
