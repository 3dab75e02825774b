#!lua
-- Notes that handoffs of a partition may have a file from now on. Their partition notes which do (file-have.lua). Each
-- claim is another time than the one before, so that file-kept.lua tells them apart.
-- KEYS: 1 prefix:{tag}:file:tenant:id   the file   2 prefix:{tag}:files:tenant   3 prefix:{tag}:files   as in file-make
-- ARGV: 1 the call's deadline (ms)  2 the tenant  3 the file's id  4 when it was made (ms)
--       5 the tag of the handoffs' partition  6 in how many milliseconds that is asked at the earliest
-- Replies: {'claimed'}
--          {'waiting'}    its bytes aren't known to be there; nothing changed
--          {'not_found'}  as in file-whole.lua
--@include late files
local file, files, tenants, tag = KEYS[1], KEYS[2], KEYS[3], ARGV[5]
local made, bytes, whole, known = unpack(redis.call('HMGET', file, 'made', 'bytes', 'whole', tag))

if made ~= ARGV[4] then return { 'not_found' } end
if not whole then return { 'waiting' } end
local time = math.max(tonumber(known or '0') + 1, now + ARGV[6])
redis.call('HSET', file, tag, ms(time), tag .. '+', ms(now + ARGV[6]))
redis.call('PEXPIREAT', file, ms(now + KEPT))
lookAgain(files, tenants, ARGV[2], ARGV[3] .. ':' .. bytes, lookAt(redis.call('HGETALL', file), time))
return { 'claimed' }
