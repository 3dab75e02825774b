#!lua
-- Notes that handoffs of a partition may have a file from now on. Their partition notes which do (file-have.lua). Each
-- claim is another time than the one before, so that file-kept.lua tells them apart.
-- KEYS: 1 prefix:{tag}:file:tenant:id   the file   2 prefix:{tag}:files:tenant   3 prefix:{tag}:files   as in file-make
--       4 prefix:{tag}:keeping:tenant:id   which partitions may have handoffs with it (lib/files.lua)
-- ARGV: 1 the call's deadline (ms)  2 the tenant  3 the file's id  4 when it was made (ms)
--       5 the tag of the handoffs' partition  6 in how many milliseconds that is asked at the earliest
-- Replies: {'claimed'}
--          {'waiting'}    its bytes aren't known to be there; nothing changed
--          {'not_found'}  as in file-whole.lua
--@include late files
local file, files, tenants, keeping, tag = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[5]
-- While the slot moves, what isn't found here may be on the other node: Redis refuses to look for several then.
redis.call('EXISTS', file, keeping)
local made, bytes, whole = unpack(redis.call('HMGET', file, 'made', 'bytes', 'whole'))
local known = redis.call('ZSCORE', keeping, tag)

if made ~= ARGV[4] then return { 'not_found' } end
if not whole then return { 'waiting' } end
local time = math.max(tonumber(known or '0') + 1, now + ARGV[6])
redis.call('ZADD', keeping, ms(time), tag)
redis.call('HSET', file, tag, ms(now + ARGV[6]))
redis.call('PEXPIREAT', file, ms(now + KEPT))
redis.call('PEXPIREAT', keeping, ms(now + KEPT))
lookAgain(files, tenants, ARGV[2], ARGV[3] .. ':' .. bytes, lookAt(keeping, time))
return { 'claimed' }
