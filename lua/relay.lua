#!lua
-- Appends events to a tenant's feed, each once: the same step notes the last event that was moved from each partition.
-- KEYS: 1 prefix:{tag}:e:tenant        the tenant's feed, a stream
--       2 prefix:{tag}:e:tenant:moved  for each partition's tag the number of its last event that is in the feed
-- ARGV: 1 the call's deadline (ms)  2 for how long events are kept (ms)
--       3 for each partition three words: its tag, the number of the event before these events (0 if they are the
--         outbox's first), and how many they are  4 a line for each event, as the outbox has it
-- Replies: {'relayed', last, tag, moved, …}  last: the feed's newest id, or nil if nothing was appended; then, for each
--                       partition of which earlier events are missing, so that none was appended, its tag and the
--                       number of the last event that was moved
-- An outbox loses only events that were moved. So an event may follow if it comes after a moved one, or is the first of
-- its outbox.
--@include late
local feed, moved, retention, events = KEYS[1], KEYS[2], tonumber(ARGV[2]), ARGV[4]
local tags, befores, counts = {}, {}, {}
for tag, before, count in string.gmatch(ARGV[3], '(%S+) (%S+) (%S+)') do
  local at = #tags + 1
  tags[at], befores[at], counts[at] = tag, before, count
end
local noted = redis.call('HMGET', moved, unpack(tags))

local newest, words, missing, place = nil, {}, {}, 1
for at, tag in ipairs(tags) do
  local last, number = tonumber(noted[at] or 0), nil
  local isMissing = tonumber(befores[at]) > last
  if isMissing then missing[#missing + 2], missing[#missing + 1] = ms(last), tag end
  for _ = 1, counts[at] do
    -- Plain searches: a pattern would look at each letter.
    local space, stop = string.find(events, ' ', place, true), string.find(events, '\n', place, true)
    local its = string.sub(events, place, space - 1)
    if not isMissing and its + 0 > last then
      newest = redis.call('XADD', feed, '*', 'e', string.sub(events, space + 1, stop - 1))
      last, number = its + 0, its
    end
    place = stop + 1
  end
  if number then words[#words + 2], words[#words + 1] = number, tag end
end
if newest then
  redis.call('HSET', moved, unpack(words))
  -- Feed and note end half an hour later than they must, or more: so they are extended twice an hour, not by each call.
  -- The note ends last, so its end decides for both.
  if redis.call('PEXPIRETIME', moved) < now + retention + 84600000 then
    redis.call('PEXPIREAT', feed, ms(now + retention + 3600000))
    redis.call('PEXPIREAT', moved, ms(now + retention + 86400000))
  end
  redis.call('XTRIM', feed, 'MINID', '~', ms(now - retention))
  redis.pcall('SPUBLISH', feed, newest)
end
return { 'relayed', newest or false, unpack(missing) }
