#!lua flags=no-writes
-- Counts what an inbox has in one partition, and says since when, and what operators set for it there.
-- KEYS: 1 prefix:{tag}:i:tenant:inbox   the inbox (lib/inbox.lua)
-- ARGV: 1 retention (ms)
-- Replies: {'counted', now, pending, waiting, delayed, caught, failed, oldest, paused, max_caught, max_pending,
--            blocked, groups, max_caught_per_group}
--                        now: in ms; the others as countsOf says
--@include inbox
local now = clock()
local counts = countsOf(KEYS[1], ARGV[1], now)
return { 'counted', now, unpack(counts, 1, 12) }
