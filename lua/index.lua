#!lua flags=allow-oom
-- Puts handoffs into the lists and sets where they belong, takes them out of those where they don't, and names their
-- inboxes (lib/indexing.lua): replicas of versions before 0.2 don't know those lists. What is as it should be stays so,
-- so this can be called at any time.
-- KEYS: 1… prefix:{tag}:h:tenant:id   the handoffs; in a Cluster of one partition
-- ARGV: 1 the call's deadline (ms)
-- Replies: {'indexed'}
--          {'late'}      the call's deadline is over; nothing changed
-- Uses: here inbox entering failed indexing
local now = clock()

if late(ARGV[1], now) then return { 'late' } end
indexAll(now)
return { 'indexed' }
