#!lua
-- Notes that a file's bytes are there whole. Calling twice does the same as calling once.
-- KEYS: 1 prefix:{tag}:file:tenant:id   the file   2 prefix:{tag}:files:tenant   3 prefix:{tag}:files   as in file-make
-- ARGV: 1 the call's deadline (ms)  2 the tenant  3 the file's id  4 when it was made (ms)
--       5 how long after that it goes if nothing has it (ms)
-- Replies: {'whole'}
--          {'not_found'}  it has gone, or this is another one with that id; nothing changed
--@include late files
local file, files, tenants = KEYS[1], KEYS[2], KEYS[3]
local made, bytes, whole = unpack(redis.call('HMGET', file, 'made', 'bytes', 'whole'))

if made ~= ARGV[4] then return { 'not_found' } end
if whole then return { 'whole' } end
redis.call('HSET', file, 'whole', formatted)
lookAgain(files, tenants, ARGV[2], ARGV[3] .. ':' .. bytes, made + ARGV[5])
return { 'whole' }
