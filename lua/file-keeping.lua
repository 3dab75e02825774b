#!lua flags=no-writes
-- Lists the partitions whose handoffs may have a file, those that were claimed last first.
-- KEYS: 1 prefix:{tag}:keeping:tenant:id   which they are (lib/files.lua)
-- ARGV: 1 only those that are to be asked by then (ms); +inf for all  2 how many come before the page
--       3 how many it has at most
-- Replies: {'keeping', …}   each partition's tag, and when it is to be asked (ms)
local found = redis.call('ZRANGE', KEYS[1], ARGV[1], '-inf', 'BYSCORE', 'REV', 'LIMIT', ARGV[2], ARGV[3], 'WITHSCORES')
return { 'keeping', unpack(found) }
