-- What people decided and answered, for DECISIONS_RETENTION, though the handoffs go. A partition's list of each tenant,
-- prefix:{tag}:decisions:tenant, has an entry for each, tenant:id/moment (microseconds), by when (ms). What is known
-- of the entries of one handoff lies beside it, in a hash prefix:{tag}:decisions:tenant:id with these fields for each:
-- `moment`, which has state, by whom, the passer, the question's id and the digest (- for none), then the inbox's and
-- the labels' words of field x, and behind @ who signed in by an issuer (decide.lua); `moment` followed by t, the
-- texts: how many bytes the note has, a space, the note, JSON, and the beginning of the task or of the question, a JSON
-- string; and `moment` followed by s, the signature, if it was signed. An entry without texts was forgotten; without
-- the signature too, since that has the note.
-- Where a decision is noted; nil if none are. Call it before the first write (isHere).
--@if decisions
local function openDecisions(key, member)
  local tenant, id = string.match(member, '^([^:]+):(.+)$')
  local list = string.sub(key, 1, #key - #member - 2) .. 'decisions:' .. tenant
  local facts = list .. ':' .. id
  --@if oneredis
  --@else
  isHere(key, list)
  isHere(key, facts)
  --@end
  return { list = list, facts = facts, member = member }
end
--@else
local function openDecisions() end
--@end
-- The hash may keep what the list has no more: it ends with its latest entry.
local function noteDecision(decisions, now, micros, words, person, extra, note, text, signature)
  if not decisions then return end
  if person ~= '' then words = words .. ' @' .. person end
  for word in string.gmatch(extra or '', ' [Fjt]%S+') do words = words .. word end
  -- A part of a sealed text can't be opened.
  if string.byte(text) ~= 126 then text = string.sub(text, 1, 2440) end
  redis.call('HSET', decisions.facts, micros, words, micros .. 't', #note .. ' ' .. note .. text)
  if signature ~= '' then redis.call('HSET', decisions.facts, micros .. 's', signature) end
  redis.call('ZADD', decisions.list, ms(now), decisions.member .. '/' .. micros)
  for _, name in ipairs({ decisions.facts, decisions.list }) do
    redis.call('PEXPIREAT', name, ms(now + DECISIONS_RETENTION))
  end
  local over = redis.call('ZCOUNT', decisions.list, '-inf', ms(now - DECISIONS_RETENTION))
  if over > 0 then redis.call('ZREMRANGEBYRANK', decisions.list, 0, math.min(100, over) - 1) end
end
-- What decisions-trim.lua does: removes so many of each list, the oldest, as the arguments from this number on say.
-- Returns how many each list has then.
local function trimDecisions(first)
  local oldest, counts = {}, {}
  for i, list in ipairs(KEYS) do
    local count = ARGV[first + i - 1] + 0
    oldest[i] = count > 0 and redis.call('ZRANGE', list, 0, count - 1) or {}
    for _, member in ipairs(oldest[i]) do isHere(list, list .. string.match(member, '(:.+)/')) end
  end
  for i, list in ipairs(KEYS) do
    for _, member in ipairs(oldest[i]) do
      local id, moment = string.match(member, '(:.+)/(%d+)$')
      redis.call('HDEL', list .. id, moment, moment .. 't', moment .. 's')
      redis.call('ZREM', list, member)
    end
    counts[i] = redis.call('ZCARD', list)
  end
  return counts
end
