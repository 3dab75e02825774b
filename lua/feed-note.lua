#!lua flags=allow-oom
-- For a feed that has no events: notes since when none was lost. Without the note, a reader that goes on from a time
-- would have to expect missing events.
-- KEYS: 1 prefix:{tag}:e:tenant        the feed, a stream
--       2 prefix:{tag}:e:tenant:since  that time, a space, and when it was noted (ms)
-- ARGV: 1 the call's deadline (ms)  2 for how long events are kept (ms)
-- Replies: {'noted', now}
--          {'kept'}        something is kept; nothing changed
-- Readers go on when Redis is full, and this is some 100 bytes a tenant, which end by themselves. The time is before
-- now: an event of this millisecond may still come.
--@include late
local feed, note, retention = KEYS[1], KEYS[2], tonumber(ARGV[2])
local last = redis.call('XREVRANGE', feed, '+', '-', 'COUNT', 1)[1]
local before = last and tonumber(string.match(last[1], '^%d+'))
local since = tonumber(string.match(redis.call('GET', note) or '', '^%d+'))

if before and before >= now - retention then return { 'kept' } end
if not since or since >= now then since = before or now - 1 end
redis.call('SET', note, ms(since) .. ' ' .. ms(now), 'PX', ms(2 * retention + 3600000))
return { 'noted', now }
