#!lua
-- Keeps a note for a while (get.lua). Calling twice does the same as calling once.
-- KEYS: 1 prefix:{tag}:s:digest or prefix:{tag}:search:digest or prefix:{tag}:allowed   as in get.lua
-- ARGV: 1 the call's deadline (ms)  2 the note  3 how long it is kept (ms)
-- Replies: {'set'}
--@include late

redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return { 'set' }
