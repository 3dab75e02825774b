-- The most bytes of a handoff in a catch's answer: its payload, result schema, decision and checkpoint, and 700 for all
-- the rest.
local function lengthOf(payload, schema, decision, checkpoint)
  return payload + schema + decision + checkpoint + 700
end
-- Would this make the answer too long? One handoff always fits.
local function isTooLong(size, length)
  return size > 0 and size + length > 4194304
end
-- max_caught holds for both partitions of an inbox together. If one Redis has both, the script counts in both. In a
-- Cluster the inbox's own partition decides: a request first reads how many are caught in the other one, and the own
-- one keeps places for the handoffs that the request will take there, in the hash `:places` (by token: how many, and
-- until when). The request gives its places back with the time of its catch (inbox-settle.lua): a request that read the
-- other partition before that time reads again. Places end by themselves after 20 s: their catch happened at most 7 s
-- after they were kept, and an older reading of the other partition is used for at most 7 s (handoffs/inbox/take.ts).
local PLACES_KEPT = 20000
-- Reads how many places are kept, and the time of the latest catch that gave some back (ms, the other partition's
-- clock). Places that end later than new ones would were kept before the clock was set back, and don't count.
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
-- Returns how many of `max` the call may take, or the reply's tag if none; and the key of the places, if some are
-- needed.
local function mostIn(inbox, other, known, max, now)
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
-- Returns 1 if places were kept, else 0.
local function keepPlaces(key, token, count, now)
  if not key or count == 0 then return 0 end
  redis.call('HSET', key, token, ms(count) .. ' ' .. ms(now + PLACES_KEPT))
  redis.call('PEXPIREAT', key, ms(now + PLACES_KEPT))
  return 1
end
-- Appends one item of a catch from an inbox: ten parts.
local function addItem(items, position, member, created, payload, decision, passed, record, extra, schema, checkpoint)
  local parts = {
    position, member, tonumber(created), payload, decision, string.match(passed, TRACE) or false, record, extra, schema,
    checkpoint or false
  }
  for _, part in ipairs(parts) do items[#items + 1] = part end
end
-- The handoffs that an operation took and still has caught, as items. EXISTS is isHere (lib/inbox.lua).
local function stillCaught(remembered, prefix, members, agent, token, now)
  local items = {}
  for member, position in string.gmatch(members, '([^%s/]+)/?(%d*)') do
    local key = prefix .. member
    local record, payload, decision, extra, schema = unpack(redis.call('HMGET', key, 's', 'p', 'd', 'x', 'r'))
    if not record then redis.call('EXISTS', remembered, key) end
    local status, _, created, _, _, passed, deadline, by, made_by = string.match(record or '', RECORD)
    local beat = extra and string.match(extra, ' h(%d+)')
    local isOver = status == 'caught' and (now >= tonumber(deadline) or beat and now >= tonumber(beat))
    if status == 'caught' and not isOver and by == agent and made_by == token then
      addItem(items, tonumber(position) or 0, member, created, payload, decision, passed, record, extra, schema,
        checkpointOf(key, extra))
    end
  end
  return items
end
-- Do these members' payloads, schemas, checkpoints and decisions have more than `max_bytes` together? Each member has
-- `step` entries in the list.
local function areLarger(prefix, members, step, last, max_bytes)
  local sum = 0
  for i = 1, math.min(last, #members), step do
    local key = prefix .. members[i]
    for _, field in ipairs({ 'p', 'r', 'k', 'd' }) do sum = sum + redis.call('HSTRLEN', key, field) end
  end
  return sum > max_bytes
end
-- Answers an operation from the note of its earlier call, as a reply; nil if the operation may take handoffs now. The
-- note has the request's digest, how many handoffs it left to the other list, and the members that it took, each with a
-- slash and a position if positions were read. Instead of the members it may have an @, the requester that takes from
-- the other list first, and when that began. Until that requester has finished, or is gone for longer than its calls
-- can take, no other requester takes anything with this token. If that time is far ahead, the clock was set back since.
local function takenBefore(before, remembered, prefix, agent, token, request, requester, now, max_bytes)
  local asked, others, members = string.match(before or '', '^(%S+) (%d+)(.*)$')
  if before and asked ~= request then return { 'reused' } end
  local looking, since = string.match(members or '', '^ @(%S+) (%d+)$')
  if looking == requester and before or members == '' then return { 'taken', 1, tonumber(others), 0 } end
  if before and not looking then
    -- Without a key this is the same call again, whose reply was lost: no other request has this token.
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
-- The positions and the lengths of the handoffs that can be taken from the other list.
local function readPositions(text)
  local positions, sizes = {}, {}
  for position, bytes in string.gmatch(text, '(%S+)/(%S+)') do
    positions[#positions + 1], sizes[#sizes + 1] = tonumber(position), tonumber(bytes)
  end
  return positions, sizes
end
-- Notes which handoffs an operation took here (`names`), and how many it left to the other list; or that its requester
-- takes from that list first. Waiting requests with the same token look then.
local function remember(remembered, request, requester, elsewhere, names, kept_for, latest, now)
  local looking = names == '' and elsewhere > 0 and ' @' .. requester .. ' ' .. ms(now) or ''
  local lasts = looking ~= '' and 10000 or kept_for == '' and 10000 or math.max(kept_for, latest - now)
  redis.call('SET', remembered, request .. ' ' .. ms(elsewhere) .. names .. looking, 'PX', ms(lasts))
  if request ~= '-' and names ~= '' then redis.pcall('SPUBLISH', remembered, 'taken') end
end
