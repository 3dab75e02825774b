--@if direct
-- If one Redis has all keys, a transition appends its event to the tenant's feed itself. FEEDS is the beginning of the
-- feeds' keys; then come for how long events are kept, and two hours more (ms).
--@if several
-- The newest event of each feed, announced at the end.
local news = {}
--@end
--@constant FEEDS EVENTS_RETENTION FEED_TTL
local function openOutbox(_, key) return key end
-- The feed whose end this script has seen to: a sweep passes many successors.
local put_off
-- Appends an event. `text` has tenant:id at its end, from place `at` on; `first` comes before the id, who passed it and
-- `rest` behind it. `created` is when the handoff was passed (ms, text); false or nil if that is now.
local function appendPlain(_, _, text, at, micros, first, passed_by, rest, created)
  local colon = string.find(text, ':', at, true)
  local feed = FEEDS .. string.sub(text, at, colon - 1)
  local newest =
    redis.call('XADD', feed, '*', 'e', first .. string.sub(text, colon + 1) .. ' ' .. passed_by .. ' ' .. rest)
  -- A pass extends the feed's end by an hour or more beyond what is needed, so events of the same handoff within an
  -- hour needn't: most were passed within the same 1,000 s. A look at the end costs half of an extension, which is
  -- written to the append-only file, and is needed twice an hour.
  if feed ~= put_off and (not created or string.sub(created, 1, 7) ~= string.sub(micros, 1, 7) and
    micros - created * 1000 >= 3600000000) then
    put_off = feed
    if redis.call('PEXPIRETIME', feed) < micros / 1000 + FEED_TTL - 1800000 then
      redis.call('PEXPIREAT', feed, ms(micros / 1000 + FEED_TTL))
    end
    -- Readers leave out events that are too old, so a feed may keep them a little longer.
    if micros % 16 == 0 then redis.call('XTRIM', feed, 'MINID', '~', ms(micros / 1000 - EVENTS_RETENTION)) end
  end
  --@if several
  if not news[feed] then news[#news + 1] = feed end news[feed] = newest
  --@else
  redis.pcall('SPUBLISH', feed, newest)
  --@end
end
--@end
--@if relayed
-- In a Cluster a tenant's feed is on one node and its handoffs are on all, so a transition appends its event to the
-- outbox of its tenant and partition. The reply has these events too: the replica that made the call moves them to the
-- feed without another read.
--   prefix:{tag}:o         index: each tenant, scored by the number of its last event here
--   prefix:{tag}:o:tenant  events that may not be in the feed yet: number, a space, and the event's text
-- A number is the moment in microseconds, and above the one before it, also when the server's clock is set back.
-- The events that this script appended: a line for each, with the tenant, the number of the event before it, and the
-- event.
local appended = ''
-- Call it before the first write: the outbox may be on the other node (isHere in lib/inbox.lua). `anchor` is a key that
-- is here. Returns a key of the partition.
local function openOutbox(anchor, key, member)
  local partition, tenant = string.match(key, '^[^}]*}:'), string.match(member, '^[^:]+')
  redis.call('EXISTS', anchor, partition .. 'o', partition .. 'o:' .. tenant)
  return key
end
-- Appends an event, as above. `of` is a key of the partition. Where openOutbox wasn't called, this comes before the
-- script's first write, with an `anchor`. Then only what isn't found is asked for: an index and an outbox that are
-- found here can't be on the other node.
local function appendPlain(anchor, of, text, at, micros, first, passed_by, rest)
  local colon = string.find(text, ':', at, true)
  local tenant, index = string.sub(text, at, colon - 1), string.match(of, '^[^}]*}:') .. 'o'
  local list = index .. ':' .. tenant
  local last = redis.call('ZSCORE', index, tenant)
  if last and last + 0 >= micros + 0 then micros = ms(last + 1) end
  local event = micros .. ' ' .. first .. string.sub(text, colon + 1) .. ' ' .. passed_by .. ' ' .. rest
  if not last or redis.call('RPUSHX', list, event) == 0 then
    if anchor then redis.call('EXISTS', anchor, index, list) end
    redis.call('RPUSH', list, event)
  end
  redis.call('ZADD', index, micros, tenant)
  appended = appended .. tenant .. ' ' .. (last or 0) .. ' ' .. event .. '\n'
end
--@end
