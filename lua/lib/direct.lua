-- Where one Redis has all keys, a transition appends its event to the tenant's feed itself. FEEDS and EVENTS_RETENTION are written in front of
-- this library when the scripts are read: what the feeds' keys begin with, and for how long events are kept (ms).
local function openOutbox() end
local function tell(_, micros, type, member, record, extra, more)
  local tenant, id = string.match(member, '^([^:]+):(.+)$')
  local feed, oldest = FEEDS .. tenant, micros / 1000 - EVENTS_RETENTION
  local newest = redis.call('XADD', feed, 'MINID', '~', ms(oldest), '*', 'e', eventOf(type, id, record, extra, more))
  -- Reading leaves out what is too old, so a feed may keep it a little longer.
  redis.call('PEXPIREAT', feed, ms(oldest + 2 * EVENTS_RETENTION + 3600000))
  redis.call('SPUBLISH', feed, newest)
end
