-- What a catch from an inbox does (take.lua). The most bytes of one catch's answer: of each handoff its payload, result
-- schema, decision and checkpoint, and 700 for all the rest. One handoff always fits.
local MAX_TAKEN = 4194304
-- An inbox has one partition. But version 0.2.0 kept in its tenant's home partition what a person had approved, and
-- max_caught holds for both together. The version after this one may leave out all that concerns this.
-- In a Cluster the inbox's own partition decides. A call that takes in the home partition keeps room in the own one
-- before, and gives it back afterwards (inbox-room.lua), in the hash `:places` that version 0.2.0 has too. Its fields
-- are the tokens of such calls, with for how many handoffs and until when (ms), and `settled`, with when one of them
-- took something last (ms, by the home partition). What was counted there until then is too old.
local ROOM_KEPT = 20000
-- The room that others keep, and what `settled` has. A time much further ahead is of a clock that was set back since.
local function readRoom(inbox, now, token)
  local kept, taken_at, all = 0, 0, redis.call('HGETALL', inbox .. ':places')
  for i = 2, #all, 2 do
    local count, ends, at = string.match(all[i], '^(%d+) (%d+) ?(%d*)$')
    if all[i - 1] ~= token and now < ends + 0 and ends + 0 <= now + 2 * ROOM_KEPT then
      kept, taken_at = kept + count, math.max(taken_at, tonumber(at) or 0)
    end
  end
  return kept, taken_at
end
-- How many handoffs the call may take, at most `max`; or the reply's tag if none. `other` is the home partition's list
-- where one Redis has both, `elsewhere` is ARGV 7 of take.lua, `token` that of a call which may have kept room.
local function mostIn(inbox, other, elsewhere, max, now, token)
  local settings = max > 0 and redis.call('GET', inbox .. ':settings')
  if not settings then return max end
  local paused, limit = string.match(settings, '^(%d) (%d+)')
  if paused == '1' then return 'closed' end
  if limit == '0' then return max end
  if elsewhere == '?' then return 'limited' end
  local taken = redis.call('SCARD', inbox .. ':caught')
  if other then taken = taken + redis.call('SCARD', other .. ':caught') end
  local count, counted_at = string.match(elsewhere, '^(%d+)/(%d+)$')
  if count then
    local kept, taken_at = readRoom(inbox, now, token)
    if counted_at + 0 <= taken_at then return 'limited' end
    taken = taken + count + kept
  end
  return taken < limit + 0 and math.min(max, limit - taken) or 'closed'
end
local function bytesOf(all)
  local sum = 0
  for _, one in ipairs(all) do sum = sum + one.bytes end
  return sum
end
-- Appends one item of a catch from an inbox: nine parts.
local function addItem(items, one, payload)
  local at = #items
  items[at + 1], items[at + 2], items[at + 3], items[at + 4] = one.member, one.created + 0, payload, one.decision
  items[at + 5], items[at + 6] = string.match(one.passed, TRACE) or false, one.record
  items[at + 7], items[at + 8], items[at + 9] = one.extra, one.schema, one.checkpoint or false
end
-- What it takes to answer with a handoff, from its fields: but for the payload, of which Redis copies each byte.
local function entryOf(key, member, record, decision, extra, schema, created, passed)
  local checkpoint = checkpointOf(key, extra)
  local bytes = redis.call('HSTRLEN', key, 'p')
  -- How long the answer's texts are, which are opened then (lengthOf).
  if extra and string.find(extra, ' E', 1, true) then bytes = openedLength(bytes) end
  bytes = bytes + lengthOf(schema or '') + #(decision or '') + lengthOf(checkpoint or '')
  return {
    key = key, member = member, record = record, created = created, passed = passed, decision = decision, extra = extra,
    schema = schema, checkpoint = checkpoint, bytes = bytes
  }
end
-- Looks at an inbox's entry; 'gone' if it can't be caught any more, nil if it can't be caught yet, 'locked' if this
-- replica can't open it.
local function lookAtEntry(key, member, now)
  local record, decision, extra, schema = unpack(redis.call('HMGET', key, 's', 'd', 'x', 'r'))
  -- The beginning of RECORD: the rest of it would be looked for in vain.
  local status, approval, created, expires, passed =
    string.match(record or '', '^[2-5]?:?(%l+) (%S+) (%d+) (%d+) %S+ (%S+)')
  if not record or status and (status ~= 'pending' or approval == 'waiting' or now >= expires + 0) then
    return 'gone'
  end
  local available = extra and string.match(extra, ' a(%d+)')
  if not status or available and now < available + 0 then return nil end
  local one = entryOf(key, member, record, decision, extra, schema, created, passed)
  if lockOn(extra, decision, one.checkpoint) then return 'locked' end
  one.expires = expires
  return one
end
-- The handoffs that an operation took and still has caught.
local function stillCaught(remembered, prefix, members, agent, token, now)
  local all = {}
  for member in string.gmatch(members, '([^%s/]+)/?%d*') do
    local key = prefix .. member
    local record, decision, extra, schema = unpack(redis.call('HMGET', key, 's', 'd', 'x', 'r'))
    -- A missing key may be on the other node (isHere in lib/inbox.lua).
    if not record then redis.call('EXISTS', remembered, key) end
    local status, _, created, _, _, passed, deadline, by, made_by = string.match(record or '', RECORD)
    local beat = extra and string.match(extra, ' h(%d+)')
    local is_over = status == 'caught' and (now >= deadline + 0 or beat and now >= beat + 0)
    if status == 'caught' and not is_over and by == agent and made_by == token then
      all[#all + 1] = entryOf(key, member, record, decision, extra, schema, created, passed)
    end
  end
  return all
end
-- An operation's note: the request's digest; how many handoffs it took in the home partition, or may take there; and
-- what it took here, by its members. In version 0.2.0 each member may have a slash and a position. While one request
-- takes in the home partition for all with its key (inbox-room.lua), there is an @ instead of the members, with what
-- tells this call from others, and when that began. Each of its calls is over 10 s later, if it was sent at all.
local function readNote(note, now)
  local asked, count, members = string.match(note or '', '^(%S+) (%d+)(.*)$')
  local taker, since = string.match(members or '', '^ @(%S+) (%d+)$')
  return asked, count, members, taker, taker and now < since + 10000 and now > since - 10000
end
-- Answers an operation from the note of its earlier call, as a reply; nil if the operation may take handoffs now.
local function takenBefore(before, remembered, prefix, agent, token, request, now, max_bytes)
  local asked, count, members, taker, is_under_way = readNote(before, now)
  if before and asked ~= request then return { 'reused' } end
  if taker then return is_under_way and { 'left' } or { 'unsettled', taker } end
  if count and count ~= '0' and members == '' then return { 'elsewhere' } end
  if before then
    local all = stillCaught(remembered, prefix, members, agent, token, now)
    -- Without a key this is the same call again, whose reply was lost: no other request has this token.
    if max_bytes and request ~= '-' and bytesOf(all) > max_bytes then return { 'larger' } end
    for _, one in ipairs(all) do
      local lock = lockOn(one.extra, one.decision, one.checkpoint)
      if lock then return { 'locked', lock } end
    end
    local items = {}
    for _, one in ipairs(all) do addItem(items, one, redis.call('HGET', one.key, 'p')) end
    return { 'replayed', 0, unpack(items) }
  end
end
-- Notes which handoffs an operation took (`names`). Waiting requests with the same token look then.
local function remember(remembered, request, names, kept_for, work)
  local lasts = kept_for == '' and 10000 or ms(math.max(kept_for, work))
  redis.call('SET', remembered, request .. ' 0' .. names, 'PX', lasts)
  if request ~= '-' then redis.pcall('SPUBLISH', remembered, 'taken') end
end
