#!lua flags=allow-oom
-- pending -> caught, for the first handoffs that can be caught from an inbox, each as catch.lua does it. Entries that
-- can't be caught any more are removed on the way: up to 32 more entries are looked at than are wanted.
-- KEYS: 1 prefix:{tag}:i:tenant:inbox   what can be caught from the inbox, by turn (lib/inbox.lua)
--       2 prefix:{tag}:due:tenant       its tenant's live handoffs (lib/due.lua)
--       3 prefix:{tag}:n:token          what this operation took, for a retry; or which request is taking from the
--                                       other list for it, as that list's handoffs come first (lib/taking.lua)
--       4 prefix:{tag}:i:tenant:inbox   the same in its other partition, where one Redis has both; else absent
-- ARGV: 1 the call's deadline (ms)  2 catch_token  3 caught_by  4 work_ttl (ms)  5 retention (ms)  6 prefix:{tag}:h:
--       7 how many at most; 0: only those that this operation took before  8 how many bytes the answer has already
--       9 how long to remember what was taken (ms), if the work doesn't last longer; empty: as long as a call may be
--         retried  10 the request's digest, or -
--       11 what this operation can take from the other list, ascending, separated by spaces: each a turn, a slash and a
--         length in bytes; - if there is nothing but the reply is to have turns; empty if it needn't have them
--       12 the asker
--       13 in a Cluster, where max_caught holds for both partitions (lib/taking.lua): from the inbox's own list how
--         many are caught in the other one, a slash, and when that was (ms, that one's clock); ? if that isn't known;
--         from the other list ! if the inbox's own partition has kept places for what this call takes; else empty
--       14 how many bytes the payloads of what it would take, or took, may have together; absent for any
--       15 what the worker calls itself; absent if it says nothing
-- Replies: {'taken', more, elsewhere, placed, turn, member, created, payload, decision, traceparent, record, extra,
--            schema, turn, …}  more: 1 if there may be more, else 0; elsewhere: how many of the turns in ARGV 11 come
--                        before what is left; placed: 1 if places are kept for what is to be taken from the other list,
--                        else 0; a turn is 0 if ARGV 11 is empty; each item's other parts are those of catch.lua; if
--                        ARGV 7 is 0, nothing changed. With all other replies nothing changed either
--          {'replayed', more, elsewhere, placed, …}  this operation took these before, and has them still; a turn is 0
--                        if the first call read none
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
local max, size, kept_for, request, asker = tonumber(ARGV[7]), tonumber(ARGV[8]), ARGV[9], ARGV[10], ARGV[12]
--@include late

local before = redis.call('GET', remembered)
local earlier = takenBefore(before, remembered, prefix, agent, token, request, asker, now, ARGV[14])
if earlier then return earlier end
local room, places = roomIn(inbox, KEYS[4], ARGV[13], max, now)
if room == 'closed' then return { 'closed' } end
if room == 'limited' then return { 'limited' } end

local items, gone, caught, names, looked, elsewhere, more, latest = {}, {}, {}, '', 0, 0, 0, 0
local turns, sizes = readTurns(ARGV[11])
local scored, outbox, from, upto = ARGV[11] ~= '', nil, 0, room
-- Read scores only if they are needed: Redis formats them as text, which takes as long as all the rest.
local withScores = scored and { 'WITHSCORES' } or {}
local entries = room > 0 and redis.call('ZRANGE', inbox, from, upto, unpack(withScores)) or {}
-- Before payloads are read: that is what takes Redis long. Some may be of what can't be caught any more.
local step = scored and 2 or 1
if ARGV[14] and areLarger(prefix, entries, step, step * room, ARGV[14] + 0) then return { 'larger' } end
while room > 0 do
  for i = 1, #entries, step do
    local member, turn = entries[i], scored and tonumber(entries[i + 1]) or 0
    -- Handoffs of the other list that come before this one take their share of the answer's bytes too.
    while more == 0 and turns[elsewhere + 1] and turns[elsewhere + 1] < turn and #items / 9 + elsewhere < room do
      if isTooLong(size, sizes[elsewhere + 1]) then more = 1 break end
      elsewhere, size = elsewhere + 1, size + sizes[elsewhere + 1]
    end
    if more == 1 or #items / 9 + elsewhere == room or looked == room + 32 then more = 1 break end
    looked = looked + 1
    local key = prefix .. member
    local record, payload, decision, extra, schema = unpack(redis.call('HMGET', key, 's', 'p', 'd', 'x', 'r'))
    local status, approval, created, expires, _, passed = string.match(record or '', RECORD)
    local available = extra and string.match(extra, ' a(%d+)')
    if not record or status and (status ~= 'pending' or approval == 'waiting' or now >= tonumber(expires)) then
      gone[#gone + 1] = member
    elseif status and now >= tonumber(available or 0) then
      local length = lengthOf(#payload, #(schema or ''), #(decision or ''))
      if isTooLong(size, length) then more = 1 break end
      size = size + length
      -- Nothing was written before the first of them.
      outbox = outbox or openOutbox(inbox, key, member)
      local deadline
      record, extra, deadline = becomeCaught(key, due, record, extra, expires, agent .. ' ' .. token,
        work_ttl, retention, now, formatted, ARGV[15])
      append(outbox, seconds .. micros, 'caught', member, record, extra, agent)
      latest = math.max(latest, deadline)
      caught[#caught + 1] = member
      gone[#gone + 1], names = member, names .. ' ' .. member .. (scored and '/' .. ms(turn) or '')
      addItem(items, turn, member, created, payload, decision, passed, record, extra, schema)
    end
  end
  if more == 1 or #entries < step * (upto - from + 1) then break end
  from, upto = upto + 1, upto + 32
  entries = redis.call('ZRANGE', inbox, from, upto, unpack(withScores))
end
if more == 0 then elsewhere = math.min(#turns, room - #items / 9) end
-- What is left has no room now. When one of them ends, who waits is woken.
if room < max and #items / 9 + elsewhere == room then more = 0 end
if #gone > 0 then redis.call('ZREM', inbox, unpack(gone)) end
if #caught > 0 then redis.call('SADD', inbox .. ':caught', unpack(caught)) end
local placed = keepPlaces(places, token, elsewhere, now)
-- Written after all that it names, so that a retry finds all of it or nothing. With a key it is also written if only
-- the other list gave something, or is to give it: a retry would take what has entered since. An asker's note lasts no
-- longer than that one counts (lib/taking.lua), so no call that takes something has this key: while the slot moves,
-- Redis refuses such a call before it has caught anything.
if #items > 0 or request ~= '-' and (elsewhere > 0 or size > 0) then
  remember(remembered, request, asker, elsewhere, names, kept_for, latest, now)
end
local reply = { 'taken', more, elsewhere, placed, unpack(items) }
--@include reply
