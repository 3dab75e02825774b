-- Groups of an inbox (pass's `group`, word G of field x) take turns. What has no group is one group too: '', which is
-- the inbox's own list (lib/inbox.lua). Beside that list, with the same beginning:
--   :groups         what can be caught and has a group, all with the score 0: group, a space, the position, a space,
--                   tenant:id. So each group is a range, in its order
--   :grouped        the same handoffs, as tenant:id, by position
--   :turns          the groups that take turns, the next one first, by when each came to its place (microseconds)
--   :held           groups that are left out of the turns, since as many of theirs are caught as may be; by how many
--                   that were then
--   :caught-groups  the caught handoffs that have a group, all with the score 0: group, a space, tenant:id
--   :per-group      a string: max_caught_per_group (0 for none), and when it was set (microseconds)
-- A group comes to the end of the turns when it comes to have something, when it was served, and when it can be served
-- again; so no other is served twice before it. It is in `:turns` or in `:held` exactly as long as `:groups` has
-- something of it. '' is in `:turns` as long as there are groups and the inbox's own list has something. It may stay
-- there longer: then it comes to the end once that list has something again.
-- The group by field x; nil for none.
local function groupOf(extra)
  return extra and string.match(extra, ' G(%S+)')
end
-- All keys that change when something with a group enters or leaves.
local function groupKeys(inbox)
  return inbox .. ':groups', inbox .. ':grouped', inbox .. ':turns', inbox .. ':held', inbox .. ':caught-groups'
end
-- A group's range of `:groups` or `:caught-groups`: no group has a character before the exclamation mark.
local function rangeOf(group)
  return '[' .. group .. ' ', '(' .. group .. '!'
end
local function countOf(list, group)
  return redis.call('ZLEXCOUNT', list, rangeOf(group))
end
-- The next group by name that has something there.
local function groupBehind(list, group)
  local first = group == '' and '-' or '[' .. group .. '!'
  return string.match(redis.call('ZRANGE', list, first, '+', 'BYLEX', 'LIMIT', 0, 1)[1] or '', '^%S+')
end
-- A position has 16 digits until the year 2286.
local function groupEntry(group, position, member)
  return group .. ' ' .. string.format('%016d', position) .. ' ' .. member
end
-- A score behind all that are in the turns. The clock may have been set back.
local function endOfTurns(turns, micros)
  local last = redis.call('ZRANGE', turns, -1, -1, 'WITHSCORES')[2]
  return math.max((last or 0) + 1, micros)
end
local function goToEnd(turns, group, micros)
  redis.call('ZADD', turns, string.format('%d', endOfTurns(turns, micros)), group)
end
-- Returns whether it was there. The caller has asked for the keys.
local function leaveGroup(inbox, group, member)
  local groups, grouped, turns, held = groupKeys(inbox)
  local position = redis.call('ZSCORE', grouped, member)
  if not position then return false end
  local isLast = countOf(groups, group) == 1
  local isOnly = isLast and redis.call('ZCARD', groups) == 1
  redis.call('ZREM', grouped, member)
  redis.call('ZREM', groups, groupEntry(group, position, member))
  if isLast then
    redis.call('ZREM', held, group)
    redis.call('ZREM', turns, group, isOnly and '' or group)
  end
  return true
end
-- max_caught_per_group, 0 for none; and when it was set (microseconds), if it was.
local function perGroupIn(inbox)
  local limit, version = string.match(redis.call('GET', inbox .. ':per-group') or '0', '^(%d+) ?(%d*)$')
  return tonumber(limit), tonumber(version)
end
-- One of its caught handoffs has ended. `limit` and `place` are those of perGroupIn, read before the script's first
-- write, since Redis may refuse to read them. Returns whether the group can be served again.
local function leaveCaughtGroup(inbox, group, member, micros, limit, place)
  local _, _, turns, held, caught = groupKeys(inbox)
  redis.call('ZREM', caught, group .. ' ' .. member)
  local was = redis.call('ZSCORE', held, group)
  if not was then return false end
  -- A limit that was raised since has let it go already (bringBack).
  local isBack = place and (limit == 0 or was + 0 < limit)
  redis.call('ZREM', held, group)
  if isBack then redis.call('ZADD', turns, ms(place), group) else goToEnd(turns, group, micros) end
  return true
end
-- The entries of a group from a rank on, as ZRANGE gives them with scores: tenant:id, position, …
local function entriesOf(inbox, group, from, count)
  local first, last = rangeOf(group)
  local entries = redis.call('ZRANGE', inbox .. ':groups', first, last, 'BYLEX', 'LIMIT', from, count)
  local found = {}
  for i, entry in ipairs(entries) do
    local position, member = string.match(entry, ' (%d+) (.*)$')
    found[2 * i - 1], found[2 * i] = member, position
  end
  return found
end
-- How many groups have something that waits to be caught, without what has no group.
local function groupsIn(inbox)
  local _, _, turns, held = groupKeys(inbox)
  return redis.call('ZCARD', turns) - (redis.call('ZSCORE', turns, '') and 1 or 0) + redis.call('ZCARD', held)
end
-- Of 20 entries of `:groups` or `:caught-groups`, from anywhere, those whose handoffs have another status: version
-- 0.2.0 doesn't take them out.
local function straysIn(list, partition, status, micros)
  local from, strays = micros % math.max(1, redis.call('ZCARD', list) - 19), {}
  for _, entry in ipairs(redis.call('ZRANGE', list, from, from + 19)) do
    local group, member = string.match(entry, '^(%S+) .-(%S+)$')
    local key = partition .. 'h:' .. member
    local record = redis.call('HGET', key, 's')
    -- It may be on the other node (isHere in lib/inbox.lua).
    if not record then redis.call('EXISTS', list, key) end
    if string.match(record or '', '^[2-5]?:?(%l+)') ~= status then
      strays[#strays + 1] = { group = group, member = member }
    end
  end
  return strays
end
-- Moves what has a group to the inboxes' own lists, a part in each call. Returns 1 if there may be others, else 0.
local function leaveGroups(partition)
  for _, name in ipairs(redis.call('ZRANGE', partition .. 'inboxes', 0, -1)) do
    local inbox = partition .. 'i:' .. name
    local groups, grouped, turns, held = groupKeys(inbox)
    local found, entries = redis.call('ZRANGE', grouped, 0, 199, 'WITHSCORES'), {}
    for i = 1, #found, 2 do entries[i], entries[i + 1] = found[i + 1], found[i] end
    if #found > 0 then
      redis.call('EXISTS', inbox, groups, grouped, turns, held)
      redis.call('ZADD', inbox, unpack(entries))
      if #found == 400 then
        redis.call('ZREMRANGEBYRANK', grouped, 0, 199)
      else
        redis.call('DEL', groups, grouped, turns, held)
      end
      return 1
    end
  end
  return 0
end
-- A group as a take sees it: its name; how many it has; `at`, how many of those were read; `found`, what was read and
-- not looked at yet; how many are caught, or nil where none are counted; how many are `taken`; what is `gone`; and how
-- many are `locks`, which this replica can't open.
local function openGroup(plan, name)
  local size = name == '' and redis.call('ZCARD', plan.inbox) or countOf(plan.inbox .. ':groups', name)
  local group = { name = name, size = size, at = 0, found = {}, taken = 0, gone = {}, locks = 0 }
  if plan.limit > 0 and name ~= '' then group.caught = countOf(plan.inbox .. ':caught-groups', name) end
  plan.groups[#plan.groups + 1] = group
  return group
end
-- The next entry of a group that can be caught (lookAtEntry); nil if there is none, or the take has looked at enough.
-- Looks at what this replica can't open are shared out: a group that has used up its own is left to other replicas.
local function nextEntry(plan, group)
  while plan.looks > 0 and plan.locks > 0 do
    if #group.found == 0 then
      if group.at == group.size then return nil end
      local size = math.min(64, 2 * group.at + 2, group.size - group.at)
      group.found = group.name ~= '' and entriesOf(plan.inbox, group.name, group.at, size) or
        redis.call('ZRANGE', plan.inbox, group.at, group.at + size - 1, 'WITHSCORES')
      group.at, group.next = group.at + size, 1
    end
    local member, position = group.found[group.next], group.found[group.next + 1]
    group.next = group.next + 2
    if group.next > #group.found then group.found = {} end
    local one = lookAtEntry(plan.prefix .. member, member, plan.now)
    if type(one) == 'table' then
      one.group, one.position = group, position
      return one
    end
    if one == 'locked' then
      plan.share = plan.share or math.max(1, math.floor(plan.locks / redis.call('ZCARD', plan.inbox .. ':turns')))
      plan.locks, group.locks = plan.locks - 1, group.locks + 1
      if group.locks == plan.share then return nil end
    else
      plan.looks = plan.looks - 1
      if one == 'gone' then
        plan.isTidied, group.gone[#group.gone + 1] = true, { member, position }
      end
    end
  end
end
local function isAtLimit(plan, group)
  return group.caught and group.caught + group.taken >= plan.limit
end
-- What a take of `most` handoffs is to take, in the order of the turns: `wanted`, each with its group and position. It
-- only reads, since the take may still refuse. `more` is 1 if there may be others, else 0. A group that has its turn
-- goes behind all that wait for theirs. Groups at their limit, and entries that can't be caught any more, use none: a
-- take looks at 32 of these at most, and at 64 that this replica can't open. What would make the answer too long uses
-- none either, and ends the take. Groups that a lower limit held, or one that was taken away, come `back` first: until
-- all are, takes take nothing else.
local function planTurns(inbox, prefix, most, now)
  local plan = { inbox = inbox, prefix = prefix, now = now, looks = 32, locks = 64, groups = {}, wanted = {}, more = 0 }
  plan.limit, plan.place = perGroupIn(inbox)
  redis.call('EXISTS', inbox, inbox .. ':caught', groupKeys(inbox))
  plan.back = redis.call('ZRANGE', inbox .. ':held', '-inf', plan.limit == 0 and '+inf' or '(' .. ms(plan.limit),
    'BYSCORE', 'LIMIT', 0, 128)
  if #plan.back > 0 then
    plan.more = 1
    return plan
  end
  local turns, rank, queue, at, again, size = inbox .. ':turns', 0, {}, 1, {}, 0
  -- A replica of version 0.2.0 enters no turn for what has no group.
  plan.isMissing = redis.call('EXISTS', inbox) == 1 and not redis.call('ZSCORE', turns, '')
  while #plan.wanted < most and plan.looks > 0 and plan.locks > 0 do
    if at > #queue and rank then
      local count = most - #plan.wanted + 1
      queue, at = redis.call('ZRANGE', turns, rank, rank + count - 1), 1
      rank = #queue == count and rank + count
      if not rank and plan.isMissing then queue[#queue + 1] = '' end
    end
    if at > #queue then queue, at, again = again, 1, {} end
    local group, one = queue[at], nil
    if not group then break end
    if type(group) == 'string' then group = openGroup(plan, group) end
    if isAtLimit(plan, group) then
      plan.looks = plan.looks - 1
    else
      one = nextEntry(plan, group)
    end
    at = at + 1
    if one and size > 0 and size + one.bytes + 700 > MAX_TAKEN then
      plan.more = 1
      break
    elseif one then
      size, group.taken = size + one.bytes + 700, group.taken + 1
      plan.wanted[#plan.wanted + 1], again[#again + 1] = one, group
    end
  end
  if plan.looks == 0 or rank then plan.more = 1 end
  for i = at, #queue do again[#again + 1] = queue[i] end
  for _, group in ipairs(again) do
    local isNext = type(group) == 'string' or not isAtLimit(plan, group) and (#group.found > 0 or group.at < group.size)
    if isNext then plan.more = 1 end
  end
  if plan.share and #plan.wanted == 0 and not plan.isTidied then plan.more = 0 end
  return plan
end
-- What leaves the lists: the first `count` that the plan wanted, and what can't be caught any more. Each group counts
-- what it has left.
local function leaversOf(plan, count)
  local own, members, entries = {}, {}, {}
  local function leave(group, member, position)
    group.left = group.left - 1
    if group.name == '' then
      own[#own + 1] = member
    else
      members[#members + 1], entries[#entries + 1] = member, groupEntry(group.name, position, member)
    end
  end
  for _, group in ipairs(plan.groups) do
    group.taken, group.left = 0, group.size
    for _, entry in ipairs(group.gone) do leave(group, entry[1], entry[2]) end
  end
  for i = 1, count do
    local one = plan.wanted[i]
    local group = one.group
    group.taken, group.last = group.taken + 1, i
    leave(group, one.member, one.position)
  end
  return own, members, entries
end
-- Each of these commands is the last one that uses what it may empty (lib/inbox.lua).
local function removeAll(key, members)
  if #members > 0 then redis.call('ZREM', key, unpack(members)) end
end
-- They come to the place that the end of the turns had when the limit was set.
local function bringBack(plan, micros)
  local _, _, turns, held = groupKeys(plan.inbox)
  local place, scores = ms(plan.place or endOfTurns(turns, micros)), {}
  for i, group in ipairs(plan.back) do scores[2 * i - 1], scores[2 * i] = place, group end
  redis.call('ZADD', turns, unpack(scores))
  redis.call('ZREM', held, unpack(plan.back))
end
-- The first `count` that the plan wanted were taken.
local function takeTurns(plan, count, micros)
  if #plan.back > 0 then return bringBack(plan, micros) end
  local groups, grouped, turns, held = groupKeys(plan.inbox)
  local own, members, entries = leaversOf(plan, count)
  local isOver, names, served, over, full = redis.call('ZCARD', groups) == #entries, {}, {}, {}, {}
  local isMissing = plan.isMissing
  for _, group in ipairs(plan.groups) do
    if group.name == '' and (group.last or group.left == 0) then isMissing = false end
    if group.left == 0 then
      over[#over + 1] = group.name
    elseif isAtLimit(plan, group) then
      over[#over + 1], full[#full + 1], full[#full + 2] = group.name, ms(group.caught + group.taken), group.name
    elseif group.last then
      names[group.last] = group.name
    end
  end
  -- In the order in which they were served last; what has no group, if it is missing, comes before them.
  if isMissing then served[1] = '' end
  for at = 1, count do
    if names[at] then served[#served + 1] = names[at] end
  end
  if isOver then
    over[#over + 1] = ''
  elseif #served > 0 then
    local place, scores = endOfTurns(turns, micros), {}
    for i, name in ipairs(served) do scores[2 * i - 1], scores[2 * i] = ms(place + i), name end
    redis.call('ZADD', turns, unpack(scores))
  end
  if #full > 0 then redis.call('ZADD', held, unpack(full)) end
  removeAll(plan.inbox, own)
  removeAll(grouped, members)
  removeAll(groups, entries)
  removeAll(turns, over)
end
