#!lua flags=allow-oom
-- What a call does in an inbox's own partition before it takes in the home partition, where version 0.2.0 left
-- handoffs, and again afterwards (lib/taking.lua). In a Cluster it keeps room there: also without max_caught, which may
-- be set before it takes. With an Idempotency-Key it notes that it takes for all requests with this key, and then
-- whether it took something. Like take.lua it leads to memory being freed (allow-oom).
-- KEYS: 1 prefix:{tag}:i:tenant:inbox   the inbox in its own partition
--       2 prefix:{tag}:n:token          with a key: the note of what the operation took (lib/taking.lua)
-- ARGV: 1 the call's deadline (ms)  2 what tells this call from others
--       3 before: how many are wanted; afterwards 0
--       4 in a Cluster. Before: ARGV 7 of take.lua; afterwards: when the call took something (ms, by the home
--         partition), 0 if nothing. Else empty
--       5 with a key: the request's digest
--       6 with a key, afterwards: how many were taken  7 and how long to keep the note then (ms)
-- Replies: {'kept', most}  before: how many the call may take; afterwards 0. With all other replies nothing changed
--          {'closed'}      the inbox is paused, or as many of its handoffs are caught as may be
--          {'limited'}     ARGV 4 is too old
--          {'left'}        another request with this key is taking in the home partition
--          {'known'}       this key has taken something before
--          {'reused'}      this key came with another request before
--@include taking
local inbox, token, wanted, at_home, note = KEYS[1], ARGV[2], ARGV[3] + 0, ARGV[4], KEYS[2]
local request, taken, kept_for = ARGV[5], ARGV[6], ARGV[7]
local places = inbox .. ':places'
-- Longer than any request waits (ms): so all with the key learn that this call never said what came of it.
local NOTE_KEPT = 120000
--@include late

-- While the slot moves, some of these may be on the other node (isHere in lib/inbox.lua).
redis.call('EXISTS', inbox, inbox .. ':settings', inbox .. ':caught', places)
local asked, _, _, taker, is_under_way = readNote(note and redis.call('GET', note), now)
if wanted > 0 and asked then
  if asked ~= request then return { 'reused' } end
  if is_under_way and taker ~= token then return { 'left' } end
  if not taker then return { 'known' } end
end
local most = wanted > 0 and mostIn(inbox, nil, at_home, wanted, now, token) or 0
if most == 'closed' then return { 'closed' } end
if most == 'limited' then return { 'limited' } end

if at_home ~= '' then
  local ends, _, taken_at = ms(now + ROOM_KEPT), readRoom(inbox, now)
  if most > 0 then
    redis.call('HSET', places, token, ms(most) .. ' ' .. ends)
  elseif at_home ~= '0' then
    redis.call('HSET', places, 'settled', '0 ' .. ends .. ' ' .. ms(math.max(taken_at, at_home + 0)))
  end
  redis.call('PEXPIREAT', places, ends)
end
if note and most > 0 then
  redis.call('SET', note, request .. ' ' .. ms(most) .. ' @' .. token .. ' ' .. ms(now), 'PX', NOTE_KEPT)
elseif note and taken ~= '0' then
  redis.call('SET', note, request .. ' ' .. taken, 'PX', kept_for)
elseif note and taker == token then
  redis.call('DEL', note)
end
if most == 0 and at_home ~= '' then
  -- Last, since this may leave the hash empty. A request that waits may have counted these twice.
  redis.call('HDEL', places, token)
  redis.pcall('SPUBLISH', inbox, 'given')
end
return { 'kept', most }
