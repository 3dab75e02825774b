#!lua flags=no-writes
-- Reads a tenant's feed.
-- KEYS: 1 prefix:{tag}:e:tenant   the feed, a stream
-- ARGV: 1 the id after which to read; empty: only the newest id is wanted  2 how many at most
--       3 for how long events are kept (ms)
--       4 prefix:{tag}:e:tenant:since, as in feed-note.lua: no key of the call, since most feeds have none, and Redis
--         would then read no feed while its slot moves
-- Replies: {'feed', newest, oldest, length, now, since, noted, id, text, …}  newest: the last id that was given;
--              oldest: the id of the first kept event; each empty for none; length: how many are kept; since: events
--              that were written from then on (ms) are kept, unless they are too old; empty if that isn't known; ?
--              while the slot moves. It is read if no event is kept, or ARGV 1 is older than the oldest; noted: 1 if
--              the note need not be renewed, else 0
-- Events older than the retention count as removed. Those that are still there show since when none was lost.
--@include inbox
local feed, note, after, max, retention = KEYS[1], ARGV[4], ARGV[1], ARGV[2], tonumber(ARGV[3])
local now = clock()
local kept = ms(math.max(0, now - retention))
local oldest = redis.call('XRANGE', feed, kept, '+', 'COUNT', 1)[1]
local newest = oldest and redis.call('XREVRANGE', feed, '+', '-', 'COUNT', 1)[1]
local found = { 'feed', newest and newest[1] or '', oldest and oldest[1] or '', redis.call('XLEN', feed), now, '', 0 }
local isOlder = false
if oldest and after ~= '' then
  local place, first = tonumber(string.match(after, '^%d+')), tonumber(string.match(oldest[1], '^%d+'))
  isOlder = place < first
  for _, entry in ipairs(redis.call('XRANGE', feed, isOlder and oldest[1] or '(' .. after, '+', 'COUNT', max)) do
    found[#found + 1], found[#found + 2] = entry[1], entry[2][2]
  end
end
-- This fails if one of the two may be on the other node. The events that were read count all the same.
local isAsked = isOlder or not oldest
if isAsked and not pcall(isHere, feed, note) then
  found[6] = '?'
elseif isAsked then
  local since, written = string.match(redis.call('GET', note) or '', '^(%d+) (%d+)')
  local last = redis.call('XREVRANGE', feed, oldest and '(' .. oldest[1] or '+', '-', 'COUNT', 1)[1]
  local before = last and string.match(last[1], '^%d+')
  found[6] = since and (not before or since + 0 < before + 0) and since or before or ''
  if since and since + 0 < now and written + 0 <= now and now - written < retention / 2 then found[7] = 1 end
end
return found
