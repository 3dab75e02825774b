#!lua flags=allow-oom
-- pending -> expired, caught -> expired: what is due in one partition, in batches of limited size. The payload of one
-- that nobody caught is freed, unless it was for an inbox; that of a caught one moves to the next attempt if there is
-- one. Where the payload stays, the handoff enters the failed lists (lib/failed.lua), and can be reissued. The key's
-- TTL was set with the deadline, so a handoff stays readable for as long as without the sweep. The sweep publishes only
-- changes of a waiting list, and successors: requests that wait for a handoff know its deadline already. A handoff
-- whose delay is over enters its inbox.
-- KEYS: 1 prefix:{tag}:due   live handoffs by when the sweep is to look at them
-- ARGV: 1 the call's deadline (ms)  2 prefix:{tag}:  3 how many at most  4 1 to name those that expire, else 0
--       5 retention (ms)  6 1 for the last of what is due, not the first; else 0, or absent
-- Replies: {'swept', looked_at, expired, live, until_due, stalled, stalled_reissued, late_reissued, member, …,
--            after}  if looked_at is at the limit, there may be more; live: how many the index has now; until_due:
--                        when the first of them is due (ms from now, below 0 if overdue), nil if there is none;
--                        stalled: how many of the expired missed a heartbeat; …_reissued: how many of those, and of the
--                        ones that weren't done in time, have a successor; the members only if they are to be named;
--                        after: if there are any, three lists of members (lib/after.lua): that have ended and have
--                        dependents; that are blocked and were passed just now, or have ended and left notes; that are
--                        blocked for longer
--          {'late'}      the call's deadline is over; nothing changed
-- The script builds the handoffs' keys from the members: all carry the partition's tag, so all are in the slot of
-- KEYS[1].
-- While a slot moves, a key that isn't here may still be on the node that it comes from. A handoff's key outlives its
-- place in the index by the retention. Until that is over, a missing key or a missing entry in the waiting list isn't
-- taken for gone: it is looked for again after 1 s, 2 s, 4 s, …, so that other members get their turn. The fraction of
-- the score counts these looks (in 1/32): after n of them at least 2^n - 1 s are over. Everything else that sets the
-- score sets a whole number.
-- Uses: appending
local call, due = redis.call, KEYS[1]
local prefix, limit, naming, retention = ARGV[2], ARGV[3], ARGV[4] == '1', tonumber(ARGV[5])
local handoffs = prefix .. 'h:'
local now, seconds, micros = clock()
micros = seconds .. micros
-- Behind a million of one tenant's another tenant's few would wait for long, so calls take from both ends.
local skipped = ARGV[6] == '1' and math.max(0, call('ZCOUNT', due, '-inf', now) - limit) or 0
-- By rank where some are skipped: by score Redis goes over each of those, a million of them in 30 ms.
local members = skipped > 0 and call('ZRANGE', due, skipped, skipped + limit - 1) or
  call('ZRANGE', due, '-inf', now, 'BYSCORE', 'LIMIT', 0, limit)

if late(ARGV[1], now) then return { 'late' } end
-- Most are plain, and nobody has caught them. For them this does what sweepOne does, with less to define and to ask: a
-- quarter less work. The first that isn't like that is left to sweepOne, with those after it. Both times in a record
-- have 13 digits.
local place, named = 1, {}
while place <= #members do
  local member = members[place]
  local key = handoffs .. member
  local record = call('HGET', key, 's')
  if not record or string.sub(record, 1, 13) ~= 'pending none ' or now < string.sub(record, 28, 40) + 0 then break end
  appendPlain(key, due, member, 1, micros, 'expired expired ', string.match(record, '%S+', 42), '- bnot_caught',
    string.sub(record, 14, 26))
  record = 'expired' .. string.sub(record, 8)
  call('HSET', key, 's', record, 'p', '')
  if naming then named[place] = member end
  place = place + 1
end
local expired, stalled, stalled_reissued, late_reissued, later, successors = place - 1, 0, 0, 0, {}, {}
local ended, fresh, blocked = {}, {}, {}
if place <= #members then
  -- Uses: events attempts here inbox entering after pending caught failed asking successor sweeping
  local batch = {
    now = now, micros = micros, retention = retention, expired = expired, stalled = 0, stalled_reissued = 0,
    late_reissued = 0, named = naming and named, later = later, successors = successors, ended = ended,
    fresh = fresh, blocked = blocked
  }
  for place = place, #members do sweepOne(batch, due, skipped + place, members[place], prefix) end
  expired, stalled, stalled_reissued, late_reissued =
    batch.expired, batch.stalled, batch.stalled_reissued, batch.late_reissued
end
-- These members leave the index, except those that go on, and the successors enter it. That comes last, so that
-- none leaves it unseen, and what is added comes before what is taken off: an index that is empty in between would be
-- looked for on the other node if its slot is moving. All that is added is after what is due now. Successors can wait
-- until here, since Redis refuses the first RENAME if the slot is moving, and so the whole script.
if #successors > 0 then call('ZADD', due, unpack(successors)) end
if #later > 0 then call('ZADD', due, unpack(later)) end
local live, over = call('ZCARD', due), #members - #later / 2
if over > 0 then live = live - call('ZREMRANGEBYRANK', due, skipped, skipped + over - 1) end
if #ended + #fresh + #blocked > 0 then named[#named + 1] = { ended, fresh, blocked } end
local first = live > 0 and call('ZRANGE', due, 0, 0, 'WITHSCORES')
return { 'swept', #members, expired, live, first and first[2] - now,
  stalled, stalled_reissued, late_reissued, unpack(named) }
