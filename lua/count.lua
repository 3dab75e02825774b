#!lua flags=no-writes
-- Counts what is in lists: of one partition, or of several where one Redis has them all.
-- KEYS: 1… sorted sets, as lua/list.lua reads them
-- ARGV: none
-- Replies: {'counted', count}  of all together
--@include listing

return { 'counted', countLists() }
