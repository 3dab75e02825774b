#!lua
-- Makes deliveries of events for a webhook, and moves its place in the feed on in the same step: so none is left out.
-- What it replays has a place of its own, so that it doesn't keep the webhook from what happens meanwhile.
-- KEYS: 1 prefix:{tag}:hook:tenant:id  2 prefix:{tag}:hook:tenant:id:due  3 prefix:{tag}:hook:tenant:id:pending
--         as in webhook-create.lua
-- ARGV: 1 the call's deadline (ms)  2 its place before; empty for what isn't of the feed: then its place stays
--       3 its place from now on; empty: it has replayed all  4 how many may be pending
--       5 for each delivery a line: its id, a space, the event's text
--       6 which place it is: cursor, in the feed; replay, in what it replays
--       7 up to which event it replays; empty for the feed
-- Replies: {'planned', place}
--          {'moved', place}    the webhook was at another place, nil if it replays nothing: another replica planned, or
--                              a replay began or was extended; nothing changed
--          {'deliveries_full'} too many would be pending; nothing changed
--          {'gone'}            there is no such webhook, or it is disabled; nothing changed
-- A pending delivery: how often it was tried, the last status, the last error, when that was (each - for none), the
-- event's text. One that is pending already stays as it is.
--@include late
local key, due, pending = KEYS[1], KEYS[2], KEYS[3]
local before, place, max, deliveries, field, replay_to = ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5], ARGV[6], ARGV[7]
local found = redis.call('HMGET', key, 'created', 'disabled', field, 'replay_to')
local count = redis.call('ZCARD', due)

if not found[1] or before ~= '' and found[2] then return { 'gone' } end
if before ~= '' and (found[3] ~= before or field == 'replay' and found[4] ~= replay_to) then
  return { 'moved', found[3] }
end
if count >= max and deliveries ~= '' then return { 'deliveries_full' } end

for id, text in string.gmatch(deliveries, '(%S+) ([^\n]+)') do
  if not redis.call('HGET', pending, id) then
    redis.call('HSET', pending, id, '0 - - - ' .. text)
    redis.call('ZADD', due, ms(now), id)
  end
end
if before ~= '' and place == '' then
  redis.call('HDEL', key, 'replay', 'replay_to')
elseif before ~= '' then
  redis.call('HSET', key, field, place)
end
return { 'planned', place }
