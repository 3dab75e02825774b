#!lua flags=allow-oom
-- pending -> caught, for the first handoffs that can be caught from an inbox, each as catch.lua does it. Entries that
-- can't be caught any more are removed on the way: the script looks at up to 32 more entries than ARGV 7.
-- KEYS: 1 prefix:{tag}:i:tenant:inbox   what can be caught from the inbox, by position (lib/inbox.lua)
--       2 prefix:{tag}:due:tenant       its tenant's live handoffs (lib/due.lua)
--       3 prefix:{tag}:n:token          a note of the handoffs that this operation took, for a retry; or of the
--                                       requester that takes from the other list first (lib/taking.lua)
--       4 prefix:{tag}:i:tenant:inbox   the same in its other partition, where one Redis has both; else absent
-- ARGV: 1 the call's deadline (ms)  2 catch_token  3 caught_by  4 work_ttl (ms)  5 retention (ms)  6 prefix:{tag}:h:
--       7 how many at most; 0: only those that this operation took before  8 how many bytes the answer has already
--       9 how long to keep the note (ms), if the work doesn't last longer; empty: as long as a call may be retried
--       10 the request's digest, or -
--       11 the handoffs that this operation can take from the other list, ascending, separated by spaces: for each its
--         position, a slash and its length in bytes; - if there are none; empty if the reply needs no positions
--       12 the requester
--       13 in a Cluster with max_caught, which holds for both partitions (lib/taking.lua): for the inbox's own list
--         how many are caught in the other partition, a slash, and when that was read (ms, that partition's clock), or
--         ? if that isn't known; for the other list ! if the own partition has kept places for this call; else empty
--       14 how many bytes the payloads may have together, those taken before too; absent: no limit
--       15 what the worker calls itself; absent if it says nothing
-- Replies: {'taken', more, elsewhere, placed, position, member, created, payload, decision, traceparent, record, extra,
--            schema, checkpoint, position, …}  more: 1 if there may be more, else 0; elsewhere: how many of ARGV 11's
--                        handoffs are to be taken now; placed: 1 if places are kept for those, else 0; a position is 0
--                        if ARGV 11 is empty; each item's other parts are those of catch.lua; if ARGV 7 is 0, nothing
--                        changed. With all other replies nothing changed either
--          {'replayed', more, elsewhere, placed, …}  this operation took these before, and has them still; a position
--                        is 0 if the first call read none
--          {'closed'}    the inbox is paused, or as many of its handoffs are caught as may be
--          {'limited'}   in a Cluster: their number is limited, and ARGV 13 isn't known, or too old
--          {'left'}      another request with this token is taking from the other list for it
--          {'reused'}    this token came with another request before
--          {'larger'}    they have more bytes than ARGV 14
--@include appending events due work taking
--@if several
local PAYLOAD = 8
--@include several
--@end
local inbox, due, remembered = KEYS[1], KEYS[2], KEYS[3]
local token, agent, work_ttl, retention, prefix = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local max, size, kept_for, request, requester = tonumber(ARGV[7]), tonumber(ARGV[8]), ARGV[9], ARGV[10], ARGV[12]
--@include late

local before = redis.call('GET', remembered)
local earlier = takenBefore(before, remembered, prefix, agent, token, request, requester, now, ARGV[14])
if earlier then return earlier end
local most, places = mostIn(inbox, KEYS[4], ARGV[13], max, now)
if most == 'closed' then return { 'closed' } end
if most == 'limited' then return { 'limited' } end

local items, gone, caught, names, looked, elsewhere, more, latest = {}, {}, {}, '', 0, 0, 0, 0
local positions, sizes = readPositions(ARGV[11])
local scored, outbox, from, upto = ARGV[11] ~= '', nil, 0, most
-- Read scores only if they are needed: Redis formats them as text, which takes as long as all the rest.
local withScores = scored and { 'WITHSCORES' } or {}
local entries = most > 0 and redis.call('ZRANGE', inbox, from, upto, unpack(withScores)) or {}
-- Lengths come first, since reading payloads is the slow part. Some may be of handoffs that can't be caught any more.
local step = scored and 2 or 1
if ARGV[14] and areLarger(prefix, entries, step, step * most, ARGV[14] + 0) then return { 'larger' } end
while most > 0 do
  for i = 1, #entries, step do
    local member, position = entries[i], scored and tonumber(entries[i + 1]) or 0
    -- Handoffs of the other list that come before this one take their share of the answer's bytes too.
    while more == 0 and positions[elsewhere + 1] and positions[elsewhere + 1] < position
      and #items / 10 + elsewhere < most do
      if isTooLong(size, sizes[elsewhere + 1]) then more = 1 break end
      elsewhere, size = elsewhere + 1, size + sizes[elsewhere + 1]
    end
    if more == 1 or #items / 10 + elsewhere == most or looked == most + 32 then more = 1 break end
    looked = looked + 1
    local key = prefix .. member
    local record, payload, decision, extra, schema = unpack(redis.call('HMGET', key, 's', 'p', 'd', 'x', 'r'))
    local status, approval, created, expires, _, passed = string.match(record or '', RECORD)
    local available = extra and string.match(extra, ' a(%d+)')
    if not record or status and (status ~= 'pending' or approval == 'waiting' or now >= tonumber(expires)) then
      gone[#gone + 1] = member
    elseif status and now >= tonumber(available or 0) then
      local checkpoint = checkpointOf(key, extra)
      local length = lengthOf(#payload, #(schema or ''), #(decision or ''), #(checkpoint or ''))
      if isTooLong(size, length) or not isTaskHere(key, member, extra, #caught > 0) then more = 1 break end
      size = size + length
      outbox = outbox or openOutbox(inbox, key, member)
      local deadline
      record, extra, deadline = becomeCaught(key, due, record, extra, expires, agent .. ' ' .. token,
        work_ttl, retention, now, formatted, ARGV[15])
      append(outbox, seconds .. micros, 'caught', member, record, extra, agent)
      latest = math.max(latest, deadline)
      caught[#caught + 1] = member
      gone[#gone + 1], names = member, names .. ' ' .. member .. (scored and '/' .. ms(position) or '')
      addItem(items, position, member, created, payload, decision, passed, record, extra, schema, checkpoint)
    end
  end
  if more == 1 or #entries < step * (upto - from + 1) then break end
  from, upto = upto + 1, upto + 32
  entries = redis.call('ZRANGE', inbox, from, upto, unpack(withScores))
end
if more == 0 then elsewhere = math.min(#positions, most - #items / 10) end
-- The inbox's limit is reached. When a caught handoff ends, a waiting request is woken.
if most < max and #items / 10 + elsewhere == most then more = 0 end
if #gone > 0 then redis.call('ZREM', inbox, unpack(gone)) end
if #caught > 0 then redis.call('SADD', inbox .. ':caught', unpack(caught)) end
local placed = keepPlaces(places, token, elsewhere, now)
-- The note is written after all changes that it names, so a retry finds all of them or none. With a key, the note is
-- written too if only the other list gave something, or will: a retry would take handoffs that entered since. A
-- requester's note lasts no longer than it counts (lib/taking.lua), so no call that takes something has this key: while
-- the slot moves, Redis refuses such a call before it has caught anything.
if #items > 0 or request ~= '-' and (elsewhere > 0 or size > 0) then
  remember(remembered, request, requester, elsewhere, names, kept_for, latest, now)
end
local reply = { 'taken', more, elsewhere, placed, unpack(items) }
--@include reply
