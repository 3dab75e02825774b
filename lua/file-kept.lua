#!lua flags=allow-oom
-- Notes what a partition said that was asked whether its handoffs still have a file.
-- KEYS: 1 prefix:{tag}:file:tenant:id   the file   2 prefix:{tag}:files:tenant   3 prefix:{tag}:files   as in file-make
--       4 prefix:{tag}:keeping:tenant:id   as in file-claim
-- ARGV: 1 the call's deadline (ms)  2 the tenant  3 the file's id  4 when it was made (ms)
--       5 the tag of that partition  6 when it was to be asked (ms), as was read before it was  7 in how many
--       milliseconds it is asked again; empty if none there has it
-- Replies: {'noted'}
--          {'changed'}    that was noted anew meanwhile, or is a claim whose handoffs may still be noted there, so what
--                         it said says nothing; nothing changed
--          {'not_found'}  as in file-whole.lua
--@include late files
local file, files, tenants, keeping, tag, after = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[5], ARGV[7]
redis.call('EXISTS', file, keeping)
local made, bytes, claimed = unpack(redis.call('HMGET', file, 'made', 'bytes', tag))
local known = redis.call('ZSCORE', keeping, tag)

if made ~= ARGV[4] then return { 'not_found' } end
if tonumber(known) ~= tonumber(ARGV[6]) or after == '' and now < tonumber(claimed or '0') then return { 'changed' } end
if after == '' then
  redis.call('HDEL', file, tag)
  redis.call('ZREM', keeping, tag)
else
  redis.call('ZADD', keeping, ms(now + after), tag)
end
redis.call('PEXPIREAT', file, ms(now + KEPT))
redis.call('PEXPIREAT', keeping, ms(now + KEPT))
-- What none has any more goes now.
lookAgain(files, tenants, ARGV[2], ARGV[3] .. ':' .. bytes, lookAt(keeping, now))
return { 'noted' }
