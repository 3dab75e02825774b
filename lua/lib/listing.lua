-- Does one text come after another in byte order, as a sorted set's members do? Lua's own > uses the server's locale.
local function isBehind(one, other)
  for i = 1, math.min(#one, #other) do
    local here, there = string.byte(one, i), string.byte(other, i)
    if here ~= there then return here > there end
  end
  return #one > #other
end
-- The rank of a sorted set's first member after a score and a text, whether or not a member has both. A binary search,
-- since any number of members may have the same score.
local function rankBehind(set, score, member)
  local low, high = redis.call('ZCOUNT', set, '-inf', '(' .. score), redis.call('ZCOUNT', set, '-inf', score)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local found = redis.call('ZRANGE', set, middle, middle)
    if isBehind(found[1], member) then high = middle else low = middle + 1 end
  end
  return low
end
-- Does field x have all these words? They stand between spaces; the empty text wants nothing.
local function isWanted(extra, words)
  for word in string.gmatch(words, '%S+') do
    if not extra or not string.find(extra .. ' ', ' ' .. word .. ' ', 1, true) then return false end
  end
  return true
end
-- `listing` is one table for the script: the search, and how much may still be read.
-- Is the handoff wanted, by its fields s and x? An overdue handoff isn't live any more, though it isn't swept yet.
local function isListed(listing, record, extra)
  -- The cheapest checks come first: of many handoffs, few are wanted.
  if listing.words ~= '' and (not extra or not isWanted(extra, listing.words)) then return false end
  if listing.name and not string.find(record, listing.name, 1, true) then return false end
  local status, approval, _, expires, passed_by, _, deadline, caught_by = string.match(record, RECORD)
  if not status then return false end
  if listing.isWaiting then
    if status ~= 'pending' or approval ~= 'waiting' or listing.now >= tonumber(expires) then return false end
  elseif listing.isAsked then
    local until_then = extra and status == 'caught' and string.match(extra, ' z[^/]+/%l/%d+/(%d+)/o')
    local over = until_then and math.min(until_then, string.match(extra, ' h(%d+)') or deadline)
    if not over or listing.now >= over then return false end
  elseif listing.isLive then
    local beat = status == 'caught' and extra and string.match(extra, ' h(%d+)')
    local over = status == 'pending' and expires or status == 'caught' and (beat or deadline) or 0
    if listing.now >= tonumber(over) then return false end
  elseif listing.isEnded then
    if status == 'pending' or status == 'caught' then return false end
    if not listing.isAll and extra and string.find(extra, ' i', 1, true) then return false end
  elseif status ~= 'failed' and status ~= 'declined' and
    (status ~= 'expired' or deadline == '' and not (extra and string.find(extra, ' t', 1, true))) then
    -- Its id came back for another handoff.
    return false
  elseif extra and string.find(extra, ' i', 1, true) then
    -- It has a successor: older versions don't know these lists.
    return false
  end
  if listing.passed_by ~= '' and listing.passed_by ~= passed_by then return false end
  if listing.caught_by ~= '' and listing.caught_by ~= caught_by then return false end
  if listing.statuses ~= '' and not string.find(listing.statuses, ' ' .. status .. ' ', 1, true) then return false end
  return true
end
-- An item; nil if it would exceed the reply's limits and isn't the first.
local function itemOf(listing, key, score, member, record, extra)
  local isFirst, task = listing.count == 0, false
  -- An error may have a megabyte: if it is too long, it isn't read.
  local length = not isFirst and not listing.isLive and redis.call('HSTRLEN', key, listing.field)
  if length and length > listing.texts then return nil end
  if listing.isWaiting then
    local task, digest = unpack(redis.call('HMGET', key, 't', 'h'))
    listing.texts, listing.count = listing.texts - #(task or ''), listing.count + 1
    return { score, member, record, extra or false, digest, task or false, redis.call('HSTRLEN', key, 'p') }
  end
  local decision, fault, progress = unpack(redis.call('HMGET', key, 'd', listing.field, 'g'))
  listing.texts = listing.texts - #(decision or '') - #(fault or '') - #(progress or '')
  -- Once it is done, the result is in the payload's place.
  local with_task = listing.with_tasks and not string.find(record, '^[24]?:?done ')
  if with_task then listing.payloads = listing.payloads - redis.call('HSTRLEN', key, 'p') end
  if not isFirst and (listing.texts < 0 or listing.payloads < 0) then return nil end
  if with_task then
    local payload = redis.call('HGET', key, 'p')
    task = payload and payload ~= '' and taskOf(payload) or false
  end
  listing.count = listing.count + 1
  local title = listing.with_titles and redis.call('HGET', key, 'n') or false
  return { score, member, record, extra or false, decision, fault, progress, task, title }
end
-- What of a handoff is listed: an item, true where none is read, or false if it isn't wanted.
local function handoffAt(listing, found, list, score, member)
  local key = (found.prefix or listing.base .. '{' .. string.match(member, ':(...)') .. '}:h:') .. member
  local record, extra = unpack(redis.call('HMGET', key, 's', 'x'))
  if not record then isHere(list, key) end
  if not record or not isListed(listing, record, extra) then return false end
  return #found - 3 < listing.limit and itemOf(listing, key, score, member, record, extra) or true
end
-- The same of a decision (lib/decisions.lua). An item: {score, member, facts, texts, signature}.
local function decisionAt(listing, found, list, score, member)
  if score - (listing.now - DECISIONS_RETENTION) <= 0 then return false end
  local id, moment = string.match(member, ':(.+)/(%d+)$')
  local facts, texts, signature =
    unpack(redis.call('HMGET', list .. ':' .. id, moment, moment .. 't', moment .. 's'))
  if not facts then
    isHere(list, list .. ':' .. id)
    return false
  end
  local state, by, words = string.match(facts, '^(%l+) (%S+) %S+ %S+ %S+(.*)$')
  if listing.statuses ~= '' and not string.find(listing.statuses, ' ' .. state .. ' ', 1, true) then return false end
  if listing.caught_by ~= '' and listing.caught_by ~= by or not isWanted(words, listing.words) then return false end
  local is_first, left = listing.count == 0, listing.texts - #(texts or '') - #(signature or '')
  if #found - 3 >= listing.limit or left < 0 and not is_first then return true end
  listing.count, listing.texts = listing.count + 1, left
  return { score, member, facts, texts, signature }
end
-- The rank of the first member to look at.
local function rankToBegin(listing, list, score, member, includes)
  local isForwards, since, before = listing.step == 1, listing.since, listing.before
  local rank
  if isForwards then
    rank = since == '' and 0 or redis.call('ZCOUNT', list, '-inf', '(' .. since)
  else
    rank = redis.call('ZCOUNT', list, '-inf', before == '' and '+inf' or '(' .. before) - 1
  end
  if score == '' then return rank end
  local after = rankBehind(list, score, member)
  local isThere = after > 0 and tonumber(redis.call('ZSCORE', list, member) or -1) == tonumber(score)
  if isForwards then return math.max(rank, includes and isThere and after - 1 or after) end
  return math.min(rank, isThere and not includes and after - 2 or after - 1)
end
-- Does this call stop before this score?
local function isBehindLast(listing, score)
  return listing.last and (score - listing.last) * listing.step > 0
end
-- Looks at one handoff. Returns whether the list ends here for this call.
local function lookAt(listing, found, list, score, member)
  if listing.step == 1 and listing.before ~= '' and score - listing.before >= 0 then return true end
  if listing.step == -1 and listing.since ~= '' and score - listing.since < 0 then return true end
  found[1], found[2] = score, member
  if isBehindLast(listing, score) or found.left == 0 then return true end
  found.left, listing.looked = found.left - 1, listing.looked + 1
  if listing.limit == 0 and not listing.isNarrow then
    found[3] = 1
    return true
  end
  local item
  if listing.isOfDecisions then
    item = decisionAt(listing, found, list, score, member)
  else
    item = handoffAt(listing, found, list, score, member)
  end
  if item == true then
    found[3] = 1
    return true
  end
  if item then found[#found + 1] = item end
  found[1], found[2] = false, false
end
-- The list's next member and its score, if one look finds them: most lists have one member of the score to begin at.
local function headOf(listing, list, score)
  local head
  if listing.step == 1 then
    head = redis.call('ZRANGE', list, score == '' and '-inf' or score, '+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')
  else
    head = redis.call('ZRANGE', list, score == '' and '+inf' or score, '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, 1,
      'WITHSCORES')
  end
  local member = head[1]
  if not member or member == '-' then return { false, false, 0 } end
  if score ~= '' and head[2] - score == 0 then return nil end
  return { head[2], member, 1 }
end
local function readList(listing, list, score, member, includes)
  local head = listing.isPlain and headOf(listing, list, score)
  if head then return head end
  local found, step, size = { false, false, 0, left = listing.looks }, listing.step, 8
  local partition = string.match(list, '^[^}]*}:')
  found.prefix = listing.base == '' and partition .. 'h:'
  local rank = rankToBegin(listing, list, score, member, includes)
  while rank >= 0 do
    local from, upto = rank, rank + size - 1
    if step == -1 then from, upto = math.max(0, rank - size + 1), rank end
    -- Without their scores: Redis writes a score more slowly than it finds a member, and the last ones may not be read.
    local members = redis.call('ZRANGE', list, from, upto)
    for i = step == 1 and 1 or #members, step == 1 and #members or 1, step do
      local member = members[i]
      -- The last member of the due index is no handoff.
      if member == '-' or lookAt(listing, found, list, redis.call('ZSCORE', list, member), member) then return found end
    end
    if #members < upto - from + 1 then break end
    rank, size = rank + step * size, math.min(64, 2 * size)
  end
  return found
end
-- Reads all lists. Where each begins is in three arguments, from this number on.
local function readLists(listing, first)
  local lists = {}
  for i = 1, #KEYS do
    local at = first + 3 * (i - 1)
    lists[i] = readList(listing, KEYS[i], ARGV[at], ARGV[at + 1], ARGV[at + 2] == '1')
  end
  return lists
end
-- How many are in all lists together.
local function countLists()
  local count = 0
  for i = 1, #KEYS do
    -- The last member of a due index is no handoff (lib/due.lua).
    count = count + redis.call('ZCOUNT', KEYS[i], '-inf', '(+inf')
  end
  return count
end
