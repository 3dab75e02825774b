#!lua
-- Takes a partition for a store of files, before the first upload there is made; if it is another's, it stays that. The
-- first partition is asked before the others, and so decides for all. The mark is lost with the records, so it tells
-- this Redis from one that is empty, or another.
-- KEYS: 1 prefix:{tag}:filestore   the mark, a space, and the store's id
-- ARGV: 1 the call's deadline (ms)  2 the id of the store that is to have it  3 a new mark, if there is none
-- Replies: {'store', mark, id}
--@include late
local mark, id = string.match(redis.call('GET', KEYS[1]) or '', '^(%S+) (.+)$')

if not mark then
  mark, id = ARGV[3], ARGV[2]
  redis.call('SET', KEYS[1], mark .. ' ' .. id)
end
return { 'store', mark, id }
