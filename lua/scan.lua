#!lua flags=no-writes
-- Names handoffs of all partitions that a server has, some at a time.
-- KEYS: none, since they are on the server that is asked
-- ARGV: 1 where to go on; 0 for the start  2 what the handoffs' keys are like, a pattern  3 at how many keys to look
-- Replies: {'named', cursor, key, …}  cursor: where to go on; 0 at the end. Some are named twice
local found = redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', ARGV[3], 'TYPE', 'hash')
return { 'named', found[1], unpack(found[2]) }
