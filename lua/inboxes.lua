#!lua flags=no-writes
-- Names the inboxes that have something in a partition, or in several where one Redis has them all; and counts it, if
-- that is asked for.
-- KEYS: 1… each prefix:{tag}:inboxes (lib/inbox.lua)
-- ARGV: 1 the first name, as ZRANGE BYLEX takes it  2 the last name  3 how many at most of each list
--       4 retention (ms) to count, too; else empty
-- Replies: {'named', now, list, …}  each list: {name, …} by bytes; or with the counts {{name, count, …}, …}: those of
--                              countsOf, or for tenant: how many wait for a person
--@include inbox
local now = clock()
return { 'named', now, unpack(readNames(ARGV[1], ARGV[2], ARGV[3], ARGV[4], now)) }
