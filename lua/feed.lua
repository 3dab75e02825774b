#!lua flags=no-writes
-- Reads a tenant's feed.
-- KEYS: 1 prefix:{tag}:e:tenant   the feed, a stream
-- ARGV: 1 the id behind which to read; empty: only the newest id is asked for  2 how many at most  3 for how long events are kept (ms)
-- Replies: {'feed', newest, oldest, length, id, text, …}  newest: the last id that was given, oldest: the first event's that is kept;
--                                                         each empty where there is none; length: how many there are
-- What is older than the retention is not there any more, whether or not it was removed.
local feed, after, most, retention = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3])
local kept = ms(math.max(0, clock() - retention))
local oldest = redis.call('XRANGE', feed, kept, '+', 'COUNT', 1)[1]
local newest = oldest and redis.call('XREVRANGE', feed, '+', '-', 'COUNT', 1)[1]
local found = { 'feed', newest and newest[1] or '', oldest and oldest[1] or '', redis.call('XLEN', feed) }
if oldest and after ~= '' then
  local behind, first = tonumber(string.match(after, '^%d+')), tonumber(string.match(oldest[1], '^%d+'))
  for _, entry in ipairs(redis.call('XRANGE', feed, behind < first and oldest[1] or '(' .. after, '+', 'COUNT', most)) do
    found[#found + 1], found[#found + 2] = entry[1], entry[2][2]
  end
end
return found
