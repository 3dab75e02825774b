-- The most bytes that a handoff takes in a catch's answer: its payload, its result schema, the decision, and 700 for
-- all the rest.
local function lengthOf(payload, schema, decision)
  return payload + schema + decision + 700
end
-- Would this make the answer too long? One handoff always fits.
local function isTooLong(size, length)
  return size > 0 and size + length > 4194304
end
-- max_caught holds for both partitions of an inbox together. Where one Redis has both, the script counts in both. In a
-- Cluster the inbox's own partition decides. A request reads first how many are caught in the other. What it will take
-- from there gets places here, in the hash `:places`: for each token how many, and until when. They are given back with
-- the time of that catch (inbox-settle.lua): a request that read the other partition before reads again. A place whose
-- request is gone ends after 20 s: its catch happened at most 7 s after it was kept, and what others read before that
-- is used for at most 7 s (handoffs/inboxes.ts).
local PLACES_KEPT = 20000
-- Reads the places: how many there are, and when the latest catch was that gave some back (ms, the other partition's
-- clock). A time that is further ahead than one can be is of a clock that was set back.
local function readPlaces(key, now)
  local kept, settled, all = 0, 0, redis.call('HGETALL', key)
  for i = 1, #all, 2 do
    local count, ends, at = string.match(all[i + 1], '^(%d+) (%d+) ?(%d*)$')
    if now < tonumber(ends) and tonumber(ends) <= now + PLACES_KEPT then
      kept, settled = kept + count, math.max(settled, tonumber(at) or 0)
    end
  end
  return kept, settled
end
-- Returns how many of `max` it may take, or what it replies instead; and the key for places, if it has to keep some.
local function roomIn(inbox, other, known, max, now)
  if max == 0 then return 0 end
  local settings = redis.call('GET', inbox .. ':settings')
  if not settings then return max end
  local paused, limit = string.match(settings, '^(%d) (%d+)')
  if paused == '1' then return 'closed' end
  if limit == '0' or known == '!' then return max end
  if known == '?' then return 'limited' end
  local taken, places = redis.call('SCARD', inbox .. ':caught'), nil
  if other then taken = taken + redis.call('SCARD', other .. ':caught') end
  local elsewhere, read = string.match(known, '^(%d+)/(%d+)$')
  if elsewhere then
    places = inbox .. ':places'
    local kept, settled = readPlaces(places, now)
    if tonumber(read) <= settled then return 'limited' end
    taken = taken + elsewhere + kept
  end
  if taken >= tonumber(limit) then return 'closed' end
  return math.min(max, limit - taken), places
end
-- Returns 1 if it kept some, else 0.
local function keepPlaces(key, token, count, now)
  if not key or count == 0 then return 0 end
  redis.call('HSET', key, token, ms(count) .. ' ' .. ms(now + PLACES_KEPT))
  redis.call('PEXPIREAT', key, ms(now + PLACES_KEPT))
  return 1
end
-- Appends one item of a catch from an inbox: nine parts.
local function addItem(items, turn, member, created, payload, decision, passed, record, extra, schema)
  local parts = {
    turn, member, tonumber(created), payload, decision, string.match(passed, TRACE) or false, record, extra, schema
  }
  for _, part in ipairs(parts) do items[#items + 1] = part end
end
-- The handoffs that an operation took and still has caught, as items. EXISTS is isHere (lib/inbox.lua).
local function stillCaught(remembered, prefix, members, agent, token, now)
  local items = {}
  for member, turn in string.gmatch(members, '([^%s/]+)/?(%d*)') do
    local key = prefix .. member
    local record, payload, decision, extra, schema = unpack(redis.call('HMGET', key, 's', 'p', 'd', 'x', 'r'))
    if not record then redis.call('EXISTS', remembered, key) end
    local status, _, created, _, _, passed, deadline, by, made_by = string.match(record or '', RECORD)
    local beat = extra and string.match(extra, ' h(%d+)')
    local isOver = status == 'caught' and (now >= tonumber(deadline) or beat and now >= tonumber(beat))
    if status == 'caught' and not isOver and by == agent and made_by == token then
      addItem(items, tonumber(turn) or 0, member, created, payload, decision, passed, record, extra, schema)
    end
  end
  return items
end
-- Have the payloads, the schemas and the decisions of these members together more bytes than may be? Each has `step`
-- places in the list.
local function areLarger(prefix, members, step, last, max_bytes)
  local sum = 0
  for i = 1, math.min(last, #members), step do
    local key = prefix .. members[i]
    for _, field in ipairs({ 'p', 'r', 'd' }) do sum = sum + redis.call('HSTRLEN', key, field) end
  end
  return sum > max_bytes
end
-- Answers an operation from what is remembered of it, as a reply; nil if it may take handoffs now. Remembered are the
-- request's digest, how many handoffs it left to the other list, and the members that it took, with a slash and a turn
-- where turns were read. Instead of the members there may be an @, the asker that takes from the other list first, and
-- when it began. Until that asker has finished, or is gone for longer than its calls can take, no other takes anything
-- with this token. A time that is as far ahead is of a clock that was set back since, and says nothing of that.
local function takenBefore(before, remembered, prefix, agent, token, request, asker, now, max_bytes)
  local asked, others, members = string.match(before or '', '^(%S+) (%d+)(.*)$')
  if before and asked ~= request then return { 'reused' } end
  local looking, since = string.match(members or '', '^ @(%S+) (%d+)$')
  if looking == asker and before or members == '' then return { 'taken', 1, tonumber(others), 0 } end
  if before and not looking then
    -- Without a key it is the same call again, whose reply was lost: nobody else asks with this token.
    if max_bytes and request ~= '-' then
      local all = {}
      for member in string.gmatch(members, '([^%s/]+)/?%d*') do all[#all + 1] = member end
      if areLarger(prefix, all, 1, #all, max_bytes + 0) then return { 'larger' } end
    end
    return {
      'replayed', 0, tonumber(others), 0, unpack(stillCaught(remembered, prefix, members, agent, token, now))
    }
  end
  if before and now < since + 10000 and now > since - 10000 then return { 'left' } end
end
-- The turns and the lengths of what can be taken from the other list.
local function readTurns(text)
  local turns, sizes = {}, {}
  for turn, bytes in string.gmatch(text, '(%S+)/(%S+)') do
    turns[#turns + 1], sizes[#sizes + 1] = tonumber(turn), tonumber(bytes)
  end
  return turns, sizes
end
-- Notes what an operation took here, by `names`, and how many it left to the other list; or that its asker takes from
-- that list first. Requests with the same token that wait look then.
local function remember(remembered, request, asker, elsewhere, names, kept_for, latest, now)
  local looking = names == '' and elsewhere > 0 and ' @' .. asker .. ' ' .. ms(now) or ''
  local lasts = looking ~= '' and 10000 or kept_for == '' and 10000 or math.max(kept_for, latest - now)
  redis.call('SET', remembered, request .. ' ' .. ms(elsewhere) .. names .. looking, 'PX', ms(lasts))
  if request ~= '-' and names ~= '' then redis.pcall('SPUBLISH', remembered, 'taken') end
end
