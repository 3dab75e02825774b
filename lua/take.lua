#!lua flags=allow-oom
-- pending -> caught, for the first that can be caught from an inbox: each as catch.lua does it. What frees memory in the end goes on when
-- Redis is full (allow-oom). What can't be caught any more leaves the list where it is met: 32 more are looked at than are wanted.
-- KEYS: 1 prefix:{tag}:i:tenant:inbox   what can be caught from the inbox, by its turn (lib/entering.lua)
--       2 prefix:{tag}:due              live handoffs by when to look at them
--       3 prefix:{tag}:n:token          what this operation took, for when it is asked again; or who looks at the other list for it, as that
--                                       comes first (lib/taking.lua)
-- ARGV: 1 the call's deadline (ms)  2 catch_token  3 caught_by  4 work_ttl (ms)  5 retention (ms)  6 prefix:{tag}:h:
--       7 how many at most; 0: those alone that this operation took before  8 how many bytes of an answer's they have already
--       9 how long it is remembered what was taken (ms), and as long as the work on it may take; empty for as long as a call is asked again
--       10 the request's digest, or -  11 what this operation can take elsewhere, ascending, parted by spaces: of each its turn, a slash and
--         its bytes; - where there is nothing, but turns are asked for, and empty where they aren't  12 who asks
-- Replies: {'taken', more, elsewhere, turn, member, created, payload, decision, traceparent, record, extra, schema, turn, …}  more: 1 where
--                        there may be others, else 0; elsewhere: how many of the others' turns come before what is left; a turn is 0
--                        where ARGV 11 is empty; of each what catch.lua says; nothing changed where it took none here before
--          {'replayed', more, elsewhere, …}  this operation took these before, and has them still; nothing changed
--          {'left'}      another request with this operation's token is looking at the other list for it; nothing changed
--          {'reused'}    this operation's token was another request's; nothing changed
--          {'late'}      the call's deadline is over; nothing changed
local inbox, due, remembered = KEYS[1], KEYS[2], KEYS[3]
local token, agent, work_ttl, retention = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local prefix, most, size, kept_for, request, asker = ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8]), ARGV[9], ARGV[10], ARGV[12]
local now, micros = clock()
local before = redis.call('GET', remembered)

if late(ARGV[1], now) then return { 'late' } end
local reply = takenBefore(before, remembered, prefix, agent, token, request, asker, now)
if reply then return reply end

local items, gone, names, looked, elsewhere, more, latest = {}, {}, '', 0, 0, 0, 0
local turns, sizes, scored, outbox = {}, {}, ARGV[11] ~= '', nil
for turn, bytes in string.gmatch(ARGV[11], '(%S+)/(%S+)') do turns[#turns + 1], sizes[#sizes + 1] = tonumber(turn), tonumber(bytes) end
local from, upto = 0, most
while most > 0 and more == 0 do
  -- Scores are numbers made text, which takes as long as all the rest.
  local entries = redis.call('ZRANGE', inbox, from, upto, unpack(scored and { 'WITHSCORES' } or {}))
  for i = 1, #entries, scored and 2 or 1 do
    local member, turn = entries[i], scored and tonumber(entries[i + 1]) or 0
    -- What has its turn before this one takes its share of the answer's bytes too.
    while more == 0 and turns[elsewhere + 1] and turns[elsewhere + 1] < turn and #items / 9 + elsewhere < most do
      if isTooLong(size, sizes[elsewhere + 1]) then more = 1 break end
      elsewhere, size = elsewhere + 1, size + sizes[elsewhere + 1]
    end
    if more == 1 or #items / 9 + elsewhere == most or looked == most + 32 then more = 1 break end
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
      record, extra, deadline = becomeCaught(key, due, member, record, extra, expires, token, agent, work_ttl, retention, now)
      tell(outbox, micros, 'caught', member, record, extra)
      latest = math.max(latest, deadline)
      gone[#gone + 1], names = member, names .. ' ' .. member
      addItem(items, turn, member, created, payload, decision, passed, record, extra, schema)
    end
  end
  if #entries < (scored and 2 or 1) * (upto - from + 1) then break end
  from, upto = upto + 1, upto + 32
end
if more == 0 then elsewhere = math.min(#turns, most - #items / 9) end
if #gone > 0 then redis.call('ZREM', inbox, unpack(gone)) end
-- Behind all that it names, so that whoever asks again finds the whole of it or nothing. With a key also that there was nothing here beside
-- what the other list gave, or is to give: or another request with this key, or this one once more, would take what came since.
if #items > 0 or request ~= '-' and (elsewhere > 0 or size > 0) then
  local remember = kept_for == '' and 10000 or math.max(kept_for, latest - now)
  local looking = #items == 0 and elsewhere > 0 and ' @' .. asker .. ' ' .. ms(now) or ''
  redis.call('SET', remembered, request .. ' ' .. ms(elsewhere) .. names .. looking, 'PX', ms(remember))
  if request ~= '-' and #items > 0 then redis.call('SPUBLISH', remembered, 'taken') end
end
return { 'taken', more, elsewhere, unpack(items) }
