-- Events (docs/events.md): each transition appends its own to the outbox of its tenant and partition, in the same script. The reply names
-- what was appended, so that the replica that made the call can move it to the tenant's feed without reading it again.
--   prefix:{tag}:o         index: each tenant, scored by the number of its last event here
--   prefix:{tag}:o:tenant  events that may not be in the feed yet: number, a space, and the event's text
-- A number is the moment in microseconds, and above the one before it, also when the server's clock is set back. An event's text: type,
-- status, id, passed_by, caught_by (- for none), then what only some have, a space, a letter and its value: t inbox, p parent, n attempt,
-- o reissue_of, i reissued_as, b expired_because.
local told = {}
-- Call it before the first write. In a Cluster the slot may be moving, and the outbox be on the other node: Redis refuses to say then of
-- several keys which of them exist. `anchor` is a key that is here.
local function openOutbox(anchor, key, member)
  local tenant = string.match(member, '^[^:]+')
  local index = string.sub(key, 1, #key - #member - 2) .. 'o'
  local outbox = { index = index, list = index .. ':' .. tenant, tenant = tenant }
  if IN_CLUSTER then redis.call('EXISTS', anchor, index, outbox.list) end
  outbox.last = tonumber(redis.call('ZSCORE', index, tenant) or 0)
  return outbox
end
-- Appends an event. `record` and `extra` are the handoff's fields s and x as they are now, `more` further words.
local function tell(outbox, micros, type, member, record, extra, more)
  local status, passed_by, deadline, caught_by = string.match(record, '^2?:?(%l+) %S+ %d+ %d+ (%S+) %S+ ?%d* ?(%d*) ?(%S*)')
  local text = type .. ' ' .. status .. ' ' .. string.sub(member, #outbox.tenant + 2) .. ' ' .. passed_by .. ' ' .. (caught_by == '' and '-' or caught_by)
  if extra then
    for word in string.gmatch(extra, ' [tpno]%S+') do text = text .. word end
  end
  if status == 'expired' then
    local beat = extra and string.match(extra, ' h(%d+)')
    text = text .. ' b' .. (deadline == '' and 'not_caught' or beat and tonumber(beat) < tonumber(deadline) and 'stalled' or 'not_done')
  end
  local number = math.max(micros, outbox.last + 1)
  local event = ms(number) .. ' ' .. text .. (more or '')
  redis.call('RPUSH', outbox.list, event)
  redis.call('ZADD', outbox.index, ms(number), outbox.tenant)
  told[#told + 1], told[#told + 2], told[#told + 3] = outbox.tenant, ms(outbox.last), event
  outbox.last = number
end
