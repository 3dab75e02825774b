#!lua flags=allow-oom
-- Notes which payload keys a replica has (core/payload-keys.ts). One without keys is noted beside others with keys
-- alone. Notes of replicas that are gone go after a while. Runs in a full Redis too (allow-oom): they are few.
-- KEYS: 1 prefix:{tag}:payload-keys   by replica: when it noted that (ms), a space, and its note
-- ARGV: 1 the call's deadline (ms)  2 the replica  3 for how long a note counts (ms)
--       4 its note: where the replica runs, then each key, name:kid, the one that seals first; spaces between them;
--         empty: it stops
-- Replies: {'noted'}
--          {'left'}   there is no note of it
--@include late
local notes, replica, lasts = KEYS[1], ARGV[2], ARGV[3]
local all, gone, isWanted = redis.call('HGETALL', notes), {}, string.find(ARGV[4], ' ', 1, true)
for i = 1, #all, 2 do
  local noted, its = string.match(all[i + 1], '^(%d+) %S+ ?(%S*)')
  if tonumber(noted) < now - lasts then
    gone[#gone + 1] = all[i]
  elseif its ~= '' and all[i] ~= replica then
    isWanted = true
  end
end
if ARGV[4] == '' then isWanted = false end

if isWanted then
  redis.call('HSET', notes, replica, formatted .. ' ' .. ARGV[4])
else
  gone[#gone + 1] = replica
end
if #gone > 0 then redis.call('HDEL', notes, unpack(gone)) end
if isWanted then redis.call('PEXPIREAT', notes, ms(now + lasts)) end
return { isWanted and 'noted' or 'left' }
