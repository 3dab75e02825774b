#!lua
-- Appends events to a tenant's feed, each once: what was moved of each partition is noted in the same step.
-- KEYS: 1 prefix:{tag}:e:tenant        the tenant's feed, a stream
--       2 prefix:{tag}:e:tenant:moved  for each partition's tag the number of its last event that is in the feed
-- ARGV: 1 the call's deadline (ms)  2 for how long events are kept (ms)
--       3 for each partition a line: =, its tag, a space, the number of the event before these (0 where these are the
--         first that its outbox has); then a line for each event, as it stands in the outbox
-- Replies: {'relayed', last, tag, moved, …}  last: the feed's newest id, or nil where nothing was appended; then each
--                       partition of which events are missing between what was moved and these, so that none of these
--                       was appended: its tag, and the number of the last that was moved
--          {'late'}     the call's deadline is over; nothing changed
-- An outbox loses only what was moved. So whatever comes after an event that was moved, or is the first that an outbox
-- has, may follow.
local feed, moved, retention, events = KEYS[1], KEYS[2], tonumber(ARGV[2]), ARGV[3]
local now = clock()
local tags = {}
for tag in string.gmatch(events, '=(%S+)') do tags[#tags + 1] = tag end
local before = redis.call('HMGET', moved, unpack(tags))

if late(ARGV[1], now) then return { 'late' } end
local newest, words, missing, at, last = nil, {}, {}, 0, nil
for mark, first, rest in string.gmatch(events, '(=?)(%S+) ([^\n]+)') do
  if mark == '=' then
    at, last = at + 1, tonumber(before[at + 1] or 0)
    if tonumber(rest) > last then
      missing[#missing + 1], missing[#missing + 2] = first, ms(last)
      last = nil
    end
  elseif last and tonumber(first) > last then
    newest = redis.call('XADD', feed, '*', 'e', rest)
    last = tonumber(first)
    if tags[at] ~= words[#words - 1] then words[#words + 2], words[#words + 1] = first, tags[at] end
    words[#words] = first
  end
end
if newest then
  redis.call('HSET', moved, unpack(words))
  redis.call('XTRIM', feed, 'MINID', '~', ms(now - retention))
  redis.call('PEXPIREAT', feed, ms(now + retention + 3600000))
  redis.call('PEXPIREAT', moved, ms(now + retention + 86400000))
  redis.pcall('SPUBLISH', feed, newest)
end
return { 'relayed', newest or false, unpack(missing) }
