#!lua
-- Notes, in a handoff's partition, that the handoff has files: before it is made, or done. Calling twice does the same
-- as calling once.
-- KEYS: 1 prefix:{tag}:h:tenant:id   the handoff, which needn't be there
-- ARGV: 1 the call's deadline (ms)  2 the files' ids, with spaces between  3 i for files that are passed, r for a
--       result's  4 how long that counts though there is no such handoff (ms)
-- Replies: {'noted'}
--@include late files
local files, role, grace = ARGV[2], ARGV[3], tonumber(ARGV[4])

openFiles(KEYS[1], KEYS[1], files)
noteFiles(KEYS[1], files, role, now, grace)
return { 'noted' }
