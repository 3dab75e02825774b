#!lua flags=allow-oom
-- Forgets a file that nothing has, and frees its share. Its object goes afterwards; if it stays, nothing names it.
-- KEYS: 1 prefix:{tag}:file:tenant:id   the file   2 prefix:{tag}:files:tenant   3 prefix:{tag}:files
--       4 prefix:{tag}:shares   as in file-make   5 prefix:{tag}:keeping:tenant:id   as in file-claim
-- ARGV: 1 the call's deadline (ms)  2 the tenant  3 the file's id  4 when it was made (ms); empty if its record has
--       gone  5 how many bytes were declared  6 1: only if it isn't known to be whole
-- Replies: {'dropped'}
--          {'in_use'}     handoffs have it, or it became whole; nothing changed
--          {'not_found'}  it has gone before, or this is another one with that id; nothing changed
--@include late files
local file, files, tenants, shares, keeping, tenant = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], ARGV[2]
local member, bytes = ARGV[3] .. ':' .. ARGV[5], tonumber(ARGV[5])
redis.call('EXISTS', file, files, tenants, shares, keeping)
local made, whole = unpack(redis.call('HMGET', file, 'made', 'whole'))

if (made or '') ~= ARGV[4] or not redis.call('ZSCORE', files, member) then return { 'not_found' } end
if made and lookAt(keeping) or ARGV[6] == '1' and whole then return { 'in_use' } end

-- Read before the first write: nothing may look for a list that was emptied.
local one, time, _, second = unpack(redis.call('ZRANGE', files, 0, 1, 'WITHSCORES'))
local first = one == member and second or one ~= member and time
local left = math.max(0, tonumber(redis.call('HGET', shares, tenant) or '0') - bytes)
redis.call('DEL', file, keeping)
redis.call('ZREM', files, member)
if left == 0 then redis.call('HDEL', shares, tenant) else redis.call('HSET', shares, tenant, ms(left)) end
if first then redis.call('ZADD', tenants, first, tenant) else redis.call('ZREM', tenants, tenant) end
return { 'dropped' }
