#!lua flags=allow-oom
-- pending -> expired, caught -> expired: the handoffs that are due in one partition, in batches of limited size. If a
-- handoff was caught, its payload moves to the next attempt, if there is one. If not, its payload is freed, unless it
-- was for an inbox. If the payload stays, the handoff enters the failed lists (lib/successor.lua), and can be reissued.
-- The key's TTL was set with the deadline and stays. The sweep publishes only changes of a waiting list, and
-- successors: requests that wait for a handoff know its deadline already. A handoff whose delay is over enters its
-- inbox. Of the tenants with due handoffs, those that have waited longest share a call. A tenant with more of them goes
-- behind the others.
-- KEYS: 1 prefix:{tag}:tenants   tenants with live handoffs, by when the sweep is to look at them (lib/due.lua)
-- ARGV: 1 the call's deadline (ms)  2 prefix:{tag}:  3 how many handoffs at most, rounded up for each tenant  4 1 to
--       name those that expire, else 0  5 retention (ms)  6 few to count live handoffs where at most 8 tenants have
--       some, all to count those of 128 tenants, and to estimate those of others by them  7 1 if the partition's slot
--       may have moved, else 0
-- Replies: {'swept', looked_at, expired, live, until_due, stalled, stalled_reissued, late_reissued, member, …, after}
--                        live: how many handoffs are live, nil if they aren't counted; until_due: when the sweep is to
--                        look again (ms from now; 0 or below: at once), nil if nothing is live; stalled: how many of
--                        the expired missed a heartbeat; …_reissued: how many of those, and of those that weren't
--                        done in time, have a successor; the members only if ARGV 4 is 1; after: if there are any,
--                        three lists of members (lib/after.lua): that have ended and have dependents; that are blocked
--                        and were passed just now or are named first, or have ended and left notes; that are blocked
--                        for longer. And in a Cluster the runs whose counts changed (lib/runs.lua): {run, when
--                        (microseconds), live, done, failed, other, first, last}
-- While a slot moves, a missing key may still be on the node that the slot comes from. A handoff's key outlives its
-- entry in the index by the retention. Until the retention is over, a missing key, or entry of the waiting list,
-- doesn't count as gone: the sweep looks again after 1 s, 2 s, 4 s, …, so that other handoffs get their turn. The
-- fraction of the score counts these looks (in 1/32): after n looks at least 2^n - 1 s are over. All other scores are
-- whole numbers.
--@include appending
--@if several
local PAYLOAD = 3
--@include several
--@end
local call, tenants = redis.call, KEYS[1]
local prefix, limit, naming, retention = ARGV[2], ARGV[3], ARGV[4] == '1', tonumber(ARGV[5])
--@include late
micros = seconds .. micros

-- What version 0.2.0 and replicas of it pass is in an index of all tenants. A slot that moves may have it elsewhere.
local first, looked_at = nil, 0
if redis.pcall('EXISTS', prefix .. 'due') == 1 then
  --@include due
  if moveOldDue(prefix, tenants, now) then first = now end
end
-- While it moved, deadlines came sooner than the sweep was to look (lookBy in lib/due.lua).
for _, tenant in ipairs(ARGV[7] == '1' and call('ZRANGE', tenants, 0, -1) or {}) do
  local due = prefix .. 'due:' .. tenant
  -- An index that isn't here has moved on, and the sweep learns that too.
  local head = redis.pcall('EXISTS', due) == 1 and call('ZRANGE', due, 0, 0, 'WITHSCORES')
  if head and head[1] ~= '-' then call('ZADD', tenants, 'LT', ms(head[2] + 0), tenant) end
end
local turns = call('ZRANGE', tenants, '-inf', now, 'BYSCORE', 'LIMIT', 0, limit)
-- Redis's clock was set back if a tenant's look is further ahead than LOOK. Passes and catches since then rely on it,
-- so it is looked at now.
local ahead = call('ZRANGE', tenants, '(' .. ms(now + LOOK), '+inf', 'BYSCORE', 'LIMIT', 0, limit)
if #ahead > 0 and #turns + #ahead >= limit + 0 then first = now end
for place = 1, math.min(#ahead, limit - #turns) do turns[#turns + 1] = ahead[place] end
local share, lists, gone = math.floor((limit - 1) / math.max(1, #turns)) + 1, {}, {}
-- Before anything is written: an index that isn't here may be on the other node.
for i, tenant in ipairs(turns) do
  call('EXISTS', tenants, prefix .. 'due:' .. tenant)
  lists[i] = call('ZRANGE', prefix .. 'due:' .. tenant, '-inf', now, 'BYSCORE', 'LIMIT', 0, share)
  looked_at = looked_at + #lists[i]
end
local batch = {
  now = now, micros = micros, retention = retention, expired = 0, stalled = 0, stalled_reissued = 0, late_reissued = 0,
  named = naming and {}, ended = {}, fresh = {}, blocked = {}
}
for i, tenant in ipairs(turns) do
  local due, members, place, later, successors = prefix .. 'due:' .. tenant, lists[i], 1, {}, {}
  -- Most are plain and uncaught: for them this is sweepOne, with a quarter less work. sweepOne gets the first other
  -- handoff, and all after it. Both times in a record have 13 digits.
  while place <= #members do
    local member = members[place]
    local key = prefix .. 'h:' .. member
    local record = call('HGET', key, 's')
    if not record or string.sub(record, 1, 13) ~= 'pending none ' or now < string.sub(record, 28, 40) + 0 then break end
    --@if events
    appendPlain(key, due, member, 1, micros, 'expired expired ', string.match(record, '%S+', 42), '- bnot_caught',
      string.sub(record, 14, 26))
    --@end
    record = 'expired' .. string.sub(record, 8)
    call('HSET', key, 's', record, 'p', '')
    if naming then batch.named[#batch.named + 1] = member end
    batch.expired, place = batch.expired + 1, place + 1
  end
  if place <= #members then
    --@include events inbox ended runs after work asking files successor sweeping
    batch.later, batch.successors, batch.was_extra = later, successors, nil
    for place = place, #members do sweepOne(batch, due, place, members[place], prefix) end
  end
  -- These members leave the index, except those that go on, and the successors enter it: last, so that none leaves it
  -- unseen. All that is added is after what is due now. Successors can wait until here: if the slot is moving, Redis
  -- has refused the first RENAME, and so the whole script.
  if #successors > 0 then call('ZADD', due, unpack(successors)) end
  if #later > 0 then call('ZADD', due, unpack(later)) end
  local over = #members - #later / 2
  if over > 0 then call('ZREMRANGEBYRANK', due, 0, over - 1) end
  local head = call('ZRANGE', due, 0, 0, 'WITHSCORES')
  local at = head[1] and head[1] ~= '-' and head[2] + 0
  if at then
    first = math.min(first or at, at)
    call('ZADD', tenants, string.format('%d', math.min(math.max(at, now), now + LOOK)), tenant)
  else
    gone[#gone + 1] = tenant
  end
end
-- From here on it must not break off: while the slot moves, Redis would look on the other node for a list that is empty
-- now, or for an index that is there.
local isLast = #gone > 0 and call('ZCARD', tenants) == #gone
for _, tenant in ipairs(gone) do call('ZREM', prefix .. 'due:' .. tenant, '-') end
if #gone > 0 then call('ZREM', tenants, unpack(gone)) end

local size, most, live = isLast and 0 or call('ZCARD', tenants), ARGV[6] == 'all' and 128 or 8, 0
for _, tenant in ipairs(size > 0 and (size <= most or most == 128) and call('ZRANGE', tenants, 0, most - 1) or {}) do
  local due = prefix .. 'due:' .. tenant
  if redis.pcall('EXISTS', due) == 1 then live = live + call('ZCARD', due) - 1 end
end
if size > most then live = most == 128 and math.floor(live * size / most) end
local head = isLast and {} or call('ZRANGE', tenants, 0, 0, 'WITHSCORES')
if head[2] then first = math.min(first or head[2], head[2]) end
local changed = {}
--@if oneredis
--@else
-- A slot that moves may have taken them along.
local all = prefix .. 'runs'
local runs = redis.pcall('EXISTS', all) == 1 and call('ZRANGE', all, 0, 19, 'WITHSCORES') or {}
for i = 1, #runs, 2 do
  local counts = prefix .. 'count:' .. runs[i]
  if redis.pcall('EXISTS', all, counts) == 2 then
    changed[#changed + 1] = { runs[i], runs[i + 1],
      unpack(call('HMGET', counts, 'live', 'done', 'failed', 'other', 'first', 'last'), 1, 6) }
  end
end
--@end
if #batch.ended + #batch.fresh + #batch.blocked + #changed > 0 then
  batch.named = batch.named or {}
  batch.named[#batch.named + 1] = { batch.ended, batch.fresh, batch.blocked, changed }
end
local reply = { 'swept', looked_at, batch.expired, live, first ~= nil and first - now, batch.stalled,
  batch.stalled_reissued, batch.late_reissued, unpack(batch.named or {}) }
--@include reply
