-- Where one Redis has all keys, a transition appends its event to the tenant's feed itself. FEEDS, EVENTS_RETENTION and
-- FEED_TTL are written in front of this library when the scripts are read: what the feeds' keys begin with, for how
-- long events are kept, and the retention and two hours (ms).
local function openOutbox() end
-- The feed whose end this script has put off: a sweep passes many successors.
local put_off
local function append(_, micros, type, member, record, extra, caught_by, more)
  local colon = string.find(member, ':', 1, true)
  local feed = FEEDS .. string.sub(member, 1, colon - 1)
  local event, created = eventOf(type, string.sub(member, colon + 1), record, extra, caught_by, more)
  local newest = redis.call('XADD', feed, '*', 'e', event)
  -- A pass puts off the feed's own end by an hour more than it has to, so what happens to that handoff within an hour
  -- need not.
  if feed ~= put_off and (type == 'passed' or micros - created * 1000 >= 3600000000) then
    put_off = feed
    redis.call('PEXPIREAT', feed, ms(micros / 1000 + FEED_TTL))
    -- Reading leaves out what is too old, so a feed may keep it a little longer.
    if micros % 16 == 0 then redis.call('XTRIM', feed, 'MINID', '~', ms(micros / 1000 - EVENTS_RETENTION)) end
  end
  redis.pcall('SPUBLISH', feed, newest)
end
