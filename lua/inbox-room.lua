#!lua flags=allow-oom
-- What a call does in an inbox's own partition before it takes in the home partition, where version 0.2.0 left
-- handoffs, and again afterwards (lib/taking.lua). In a Cluster it keeps room there, if the inbox has max_caught. With
-- an Idempotency-Key it notes that it takes for all requests with this key, and then whether it took something. Like
-- take.lua it leads to memory being freed (allow-oom).
-- KEYS: 1 prefix:{tag}:i:tenant:inbox   the inbox in its own partition
--       2 prefix:{tag}:n:token          with a key: the note of what the operation took (lib/taking.lua)
-- ARGV: 1 the call's deadline (ms)  2 what tells this call from others
--       3 before: how many are wanted; afterwards 0
--       4 before: ARGV 7 of take.lua; afterwards in a Cluster when the call took something (ms, by the home partition),
--         if it did. Else empty
--       5 with a key: the request's digest  6 how many were taken; empty if that isn't known
--       7 how long to keep the note then (ms)
-- Replies: {'kept', most}  before: how many the call may take; afterwards 0. With all other replies nothing changed
--          {'closed'}      the inbox is paused, or as many of its handoffs are caught as may be
--          {'limited'}     ARGV 4 is too old
--          {'left'}        another request with this key is taking in the home partition
--          {'known'}       this key has taken something before
--          {'reused'}      this key came with another request before
--@include taking
local inbox, token, wanted, kept, note = KEYS[1], ARGV[2], ARGV[3] + 0, KEYS[1] .. ':places', KEYS[2]
local request, taken, kept_for = ARGV[5], ARGV[6], ARGV[7]
--@include late

-- While the slot moves, some of these may be on the other node (isHere in lib/inbox.lua).
redis.call('EXISTS', inbox, inbox .. ':settings', inbox .. ':caught', kept)
local asked, count, members, taker, since = readNote(note and redis.call('GET', note))
local is_under_way = since and now < since + 10000 and now > since - 10000
if wanted > 0 and asked then
  if asked ~= request then return { 'reused' } end
  if is_under_way and taker ~= token then return { 'left' } end
  if not since then return { 'known' } end
end
local most = wanted > 0 and mostIn(inbox, nil, ARGV[4], wanted, now, token) or 0
if most == 'closed' then return { 'closed' } end
if most == 'limited' then return { 'limited' } end

local ends, _, taken_at = ms(now + ROOM_KEPT), readRoom(inbox, now)
if most > 0 and ARGV[4] ~= '' then
  redis.call('HSET', kept, token, ms(most) .. ' ' .. ends)
elseif ARGV[4] ~= '' then
  redis.call('HSET', kept, 'settled', '0 ' .. ends .. ' ' .. ms(math.max(taken_at, ARGV[4] + 0)))
end
redis.call('PEXPIREAT', kept, ends)
if most > 0 and note then
  redis.call('SET', note, request .. ' ' .. ms(most) .. ' @' .. token .. ' ' .. ms(now), 'PX', 10000)
elseif note and taken ~= '' and taken ~= '0' then
  redis.call('SET', note, request .. ' ' .. taken, 'PX', kept_for)
elseif note and taken == '0' and taker == token then
  redis.call('DEL', note)
end
if most == 0 then
  -- Last, since this may leave the hash empty. A request that waits may have counted these twice.
  redis.call('HDEL', kept, token)
  redis.pcall('SPUBLISH', inbox, 'given')
  if note then redis.pcall('SPUBLISH', note, 'taken') end
end
return { 'kept', most }
