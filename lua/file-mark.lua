#!lua flags=no-writes
-- Says which store of files a partition has the records of, and takes it for no store (that does file-store.lua).
-- KEYS: 1 prefix:{tag}:filestore   the mark, a space, and the store's id
-- ARGV: none
-- Replies: {'store', mark, id}
--          {'none'}             no upload was made here yet
local mark, id = string.match(redis.call('GET', KEYS[1]) or '', '^(%S+) (.+)$')

if not mark then return { 'none' } end
return { 'store', mark, id }
