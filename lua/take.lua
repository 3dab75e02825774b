#!lua flags=allow-oom
-- pending -> caught, for the first handoffs that can be caught from an inbox, each as catch.lua does it. Entries that
-- can't be caught any more are removed on the way: the script looks at up to 32 more entries than ARGV 4.
-- KEYS: 1 prefix:{tag}:i:tenant:inbox   what can be caught from the inbox, by position (lib/inbox.lua)
--       2 prefix:{tag}:due:tenant       its tenant's live handoffs (lib/due.lua)
--       3 prefix:{tag}:n:token          a note of the handoffs that this operation took, for a retry (lib/taking.lua)
--       4 prefix:{tag}:i:tenant:inbox   the same inbox in its other partition, where one Redis has both; else absent:
--                                       version 0.2.0 kept in the tenant's home what a person had approved
-- ARGV: 1 the call's deadline (ms)  2 catch_token  3 caught_by
--       4 how many at most; 0: only those that this operation took before
--       5 how long to keep the note (ms), if the work doesn't last longer; empty: as long as a call may be retried
--       6 the request's digest, or -
--       7 in a Cluster: how many of the inbox's handoffs are caught in its other partition, a slash, and when that was
--         counted (ms, the clock there); ? if that isn't known; empty if room is kept for this call. Else empty
--       8 how many bytes the payloads may have together, those taken before too; absent: no limit
--       9 what the worker calls itself; absent if it says nothing
-- Replies: {'taken', more, member, created, payload, decision, traceparent, record, extra, schema, checkpoint,
--            member, …}  more: 1 if there may be more, else 0; each item has the parts of catch.lua's reply; if ARGV 4
--                        is 0, nothing changed. With all other replies nothing changed either
--          {'replayed', more, member, …}  this operation took these before, and has them still
--          {'closed'}    the inbox is paused, or as many of its handoffs are caught as may be
--          {'limited'}   in a Cluster: their number is limited, and ARGV 7 isn't known, or too old
--          {'left'}      another request with this token is taking in the other partition
--          {'elsewhere'} this operation took something before in the other partition
--          {'unsettled', taker}  it may have: the call `taker` was going to, and never said what came of it
--          {'reused'}    this token came with another request before
--          {'locked', name}  this operation took one before that this replica doesn't have the key of this name for
--          {'larger'}    they have more bytes than ARGV 8
--@include appending events due work taking
--@if several
local PAYLOAD = 5
--@include several
--@end
local inbox, due, remembered = KEYS[1], KEYS[2], KEYS[3]
local token, agent, max, kept_for, request = ARGV[2], ARGV[3], ARGV[4] + 0, ARGV[5], ARGV[6]
local max_bytes, worker = ARGV[8] and ARGV[8] + 0, ARGV[9]
--@include late

local prefix = string.match(inbox, '^[^}]*}:') .. 'h:'
local before = redis.call('GET', remembered)
local earlier = takenBefore(before, remembered, prefix, agent, token, request, now, max_bytes)
if earlier then return earlier end
local most = mostIn(inbox, KEYS[4], ARGV[7], max, now)
if most == 'closed' then return { 'closed' } end
if most == 'limited' then return { 'limited' } end

-- First it is chosen what to take, since nothing may be written before the script can refuse.
local wanted, gone, more, looked, size, from, upto, plan = {}, {}, 0, 0, 0, 0, most, nil
if most > 0 and redis.call('EXISTS', inbox .. ':groups') == 1 then
  --@include groups
  plan = planTurns(inbox, prefix, most, now)
  wanted, more = plan.wanted, plan.more
end
local entries = most > 0 and not plan and redis.call('ZRANGE', inbox, from, upto) or {}
while #entries > 0 do
  for _, member in ipairs(entries) do
    if more == 1 or #wanted == most or looked == most + 32 then more = 1 break end
    looked = looked + 1
    local one = lookAtEntry(prefix .. member, member, now)
    if one == 'gone' then
      gone[#gone + 1] = member
    elseif one and one ~= 'locked' then
      if size > 0 and size + one.bytes + 700 > MAX_TAKEN then more = 1 break end
      size, wanted[#wanted + 1] = size + one.bytes + 700, one
    end
  end
  if more == 1 or #entries < upto - from + 1 then break end
  from, upto = upto + 1, upto + 32
  entries = redis.call('ZRANGE', inbox, from, upto)
end
-- If nothing of that many can be read, the inbox is as empty here: another replica may have the keys, or the version.
if not plan and #wanted == 0 and #gone == 0 then more = 0 end
if max_bytes and bytesOf(wanted) > max_bytes then return { 'larger' } end

local items, caught, of_groups, names, latest, outbox = {}, {}, {}, '', 0, nil
for _, one in ipairs(wanted) do
  if not isTaskHere(one.key, one.member, one.extra, #caught > 0) then more = 1 break end
  outbox = outbox or openOutbox(inbox, one.key, one.member)
  local payload, deadline = redis.call('HGET', one.key, 'p'), nil
  one.record, one.extra, deadline = becomeCaught(one.key, due, one.record, one.extra, one.expires,
    agent .. ' ' .. token, WORK_TTL, RETENTION, now, formatted, worker)
  append(outbox, seconds .. micros, 'caught', one.member, one.record, one.extra, agent)
  latest = math.max(latest, deadline)
  caught[#caught + 1], gone[#gone + 1], names = one.member, one.member, names .. ' ' .. one.member
  local group = one.extra and string.match(one.extra, ' G(%S+)')
  if group then of_groups[#of_groups + 1], of_groups[#of_groups + 2] = 0, group .. ' ' .. one.member end
  addItem(items, one, payload)
end
-- The inbox's limit is reached. When a caught handoff ends, a waiting request is woken.
if most < max and #caught == most then more = 0 end
if #of_groups > 0 then redis.call('ZADD', inbox .. ':caught-groups', unpack(of_groups)) end
if plan then
  --@include groups
  takeTurns(plan, #caught, seconds .. micros)
elseif #gone > 0 then
  redis.call('ZREM', inbox, unpack(gone))
end
-- The note is written after all changes that it names, so a retry finds all of them or none.
if #caught > 0 then
  redis.call('SADD', inbox .. ':caught', unpack(caught))
  remember(remembered, request, names, kept_for, latest - now)
end
local reply = { 'taken', more, unpack(items) }
--@include reply
