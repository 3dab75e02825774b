-- Where one Redis has all keys, a transition appends its event to the tenant's feed itself. FEEDS is what
-- the feeds' keys begin with; then come for how long events are kept, and the same and two hours (ms).
--@if several
-- The newest event of each feed, which is announced at the end.
local news = {}
--@end
--@constant FEEDS EVENTS_RETENTION FEED_TTL
local function openOutbox() end
-- The feed whose end this script has seen to: a sweep passes many successors.
local put_off
-- Appends an event. `text` has tenant:id at its end, from place `at` on; `first` comes before the id, who passed it and
-- `rest` behind it. `created` is when the handoff was passed (ms, text); false or nil if that is now.
local function appendPlain(_, _, text, at, micros, first, passed_by, rest, created)
  local colon = string.find(text, ':', at, true)
  local feed = FEEDS .. string.sub(text, at, colon - 1)
  local newest =
    redis.call('XADD', feed, '*', 'e', first .. string.sub(text, colon + 1) .. ' ' .. passed_by .. ' ' .. rest)
  -- A pass sees to it that the feed ends an hour later than it has to, or more. So what happens to that handoff within
  -- an hour need not: most were passed within the same 1,000 s. Asking costs half of what putting it off does, which is
  -- written to the append-only file, and is needed twice an hour.
  if feed ~= put_off and (not created or string.sub(created, 1, 7) ~= string.sub(micros, 1, 7) and
    micros - created * 1000 >= 3600000000) then
    put_off = feed
    if redis.call('PEXPIRETIME', feed) < micros / 1000 + FEED_TTL - 1800000 then
      redis.call('PEXPIREAT', feed, ms(micros / 1000 + FEED_TTL))
    end
    -- Reading leaves out what is too old, so a feed may keep it a little longer.
    if micros % 16 == 0 then redis.call('XTRIM', feed, 'MINID', '~', ms(micros / 1000 - EVENTS_RETENTION)) end
  end
  --@if several
  if not news[feed] then news[#news + 1] = feed end news[feed] = newest
  --@else
  redis.pcall('SPUBLISH', feed, newest)
  --@end
end
