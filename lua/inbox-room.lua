#!lua flags=allow-oom
-- Keeps room in an inbox with max_caught, for what a call then takes in the inbox's home partition; or gives it back
-- (lib/taking.lua). Used in a Cluster alone. Like take.lua it leads to memory being freed (allow-oom).
-- KEYS: 1 prefix:{tag}:i:tenant:inbox   the inbox in its own partition
-- ARGV: 1 the call's deadline (ms)  2 the token of that call
--       3 how many are wanted; 0 to give back the room of this token
--       4 where some are wanted: ARGV 7 of take.lua; else when the call took something (ms, by the home partition),
--         empty if it took nothing
-- Replies: {'kept', most}  how many the call may take, all of them if the inbox has no max_caught; 0 if the room was
--                          given back. With all other replies nothing changed
--          {'closed'}      the inbox is paused, or as many of its handoffs are caught as may be
--          {'limited'}     ARGV 4 is too old
--@include taking
local inbox, token, wanted, kept = KEYS[1], ARGV[2], ARGV[3] + 0, KEYS[1] .. ':places'
--@include late

-- While the slot moves, some of these may be on the other node (isHere in lib/inbox.lua).
redis.call('EXISTS', inbox, inbox .. ':settings', inbox .. ':caught', kept)
local most = wanted > 0 and mostIn(inbox, nil, ARGV[4], wanted, now, token) or 0
if most == 'closed' then return { 'closed' } end
if most == 'limited' then return { 'limited' } end

local ends, _, taken_at = ms(now + ROOM_KEPT), readRoom(inbox, now)
if most > 0 then
  redis.call('HSET', kept, token, ms(most) .. ' ' .. ends)
elseif ARGV[4] ~= '' then
  redis.call('HSET', kept, 'settled', '0 ' .. ends .. ' ' .. ms(math.max(taken_at, ARGV[4] + 0)))
end
redis.call('PEXPIREAT', kept, ends)
if most == 0 then
  -- Last, since this may leave the hash empty. A request that waits may have counted these twice.
  redis.call('HDEL', kept, token)
  redis.pcall('SPUBLISH', inbox, 'given')
end
return { 'kept', most }
