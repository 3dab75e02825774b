#!lua flags=no-writes
-- Reads the turns of the first in an inbox's list, and moves nothing: for who merges two lists.
-- KEYS: 1 prefix:{tag}:i:tenant:inbox   what can be caught from the inbox, by its turn (lib/entering.lua)
-- ARGV: 1 how many at most
-- Replies: {'read', turn, …}  ascending
local entries = redis.call('ZRANGE', KEYS[1], 0, ARGV[1] - 1, 'WITHSCORES')
local turns = {}
for i = 2, #entries, 2 do turns[#turns + 1] = entries[i] end
return { 'read', unpack(turns) }
