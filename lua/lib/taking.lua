-- Appends one item of a catch from an inbox: nine parts.
local function addItem(items, turn, member, created, payload, decision, passed, record, extra, schema)
  local parts = {
    turn, member, tonumber(created), payload, decision, string.match(passed, TRACE) or false, record, extra, schema
  }
  for _, part in ipairs(parts) do items[#items + 1] = part end
end
-- The handoffs that an operation took and still has caught, as items. One that isn't here may be on another node while
-- its slot moves: then Redis refuses to look for two keys together, and the service calls the script again.
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
-- the time when it began. Until that asker has finished, or has been gone for longer than its calls can take, no other
-- asker takes anything with this token. A time that is as far ahead is of a clock that was set back since, and says
-- nothing of how long the asker is gone.
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
