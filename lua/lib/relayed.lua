-- In a Cluster a tenant's feed is on one node and its handoffs are on all, so a transition appends its event to the
-- outbox of its tenant and partition. The reply names what was appended, so that the replica that made the call can
-- move it to the tenant's feed without reading it again.
--   prefix:{tag}:o         index: each tenant, scored by the number of its last event here
--   prefix:{tag}:o:tenant  events that may not be in the feed yet: number, a space, and the event's text
-- A number is the moment in microseconds, and above the one before it, also when the server's clock is set back.
local appended = {}
-- Call it before the first write. The slot may be moving, and the outbox be on the other node: Redis refuses to say
-- then of several keys which of them exist. `anchor` is a key that is here.
local function openOutbox(anchor, key, member)
  local tenant = string.match(member, '^[^:]+')
  local index = string.sub(key, 1, #key - #member - 2) .. 'o'
  local outbox = { index = index, list = index .. ':' .. tenant, tenant = tenant }
  redis.call('EXISTS', anchor, index, outbox.list)
  outbox.last = tonumber(redis.call('ZSCORE', index, tenant) or 0)
  return outbox
end
local function append(outbox, micros, type, member, record, extra, caught_by, more)
  local number = math.max(micros, outbox.last + 1)
  local event = ms(number) .. ' ' ..
    eventOf(type, string.sub(member, #outbox.tenant + 2), record, extra, caught_by, more)
  redis.call('RPUSH', outbox.list, event)
  redis.call('ZADD', outbox.index, ms(number), outbox.tenant)
  appended[#appended + 1], appended[#appended + 2], appended[#appended + 3] = outbox.tenant, ms(outbox.last), event
  outbox.last = number
end
