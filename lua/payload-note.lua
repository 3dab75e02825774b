#!lua flags=allow-oom
-- Notes which payload keys a replica has (core/payload-keys.ts). Notes of replicas that are gone go after a while. Runs
-- in a full Redis too (allow-oom): they are few.
-- KEYS: 1 prefix:{tag}:payload-keys   by replica: when it noted that (ms), a space, and its note
-- ARGV: 1 the call's deadline (ms)  2 the replica  3 for how long a note counts (ms)
--       4 its note: where the replica runs, then each key, name:kid, the one that seals first; spaces between them
-- Replies: {'noted'}
--@include late
local notes, replica, lasts = KEYS[1], ARGV[2], ARGV[3]
local all, gone = redis.call('HGETALL', notes), {}
for i = 1, #all, 2 do
  if tonumber(string.match(all[i + 1], '^%d+')) < now - lasts then gone[#gone + 1] = all[i] end
end

redis.call('HSET', notes, replica, formatted .. ' ' .. ARGV[4])
if #gone > 0 then redis.call('HDEL', notes, unpack(gone)) end
redis.call('PEXPIREAT', notes, ms(now + lasts))
return { 'noted' }
