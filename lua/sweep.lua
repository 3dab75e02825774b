#!lua flags=allow-oom
-- pending -> expired, caught -> expired: what is due in one partition, in batches of limited size. The payload of an uncaught handoff is
-- freed; that of a caught one moves to the next attempt if there is one, and else stays. The key's TTL was set with the deadline, so a
-- handoff stays readable for as long as without the sweep. The sweep publishes only changes of a waiting list, and successors: requests that
-- wait for a handoff know its deadline already. A handoff whose delay is over enters its inbox.
-- KEYS: 1 prefix:{tag}:due   live handoffs by when the sweep is to look at them
-- ARGV: 1 the call's deadline (ms)  2 prefix:{tag}:  3 how many at most  4 1 to name those that expire, else 0  5 retention (ms)
-- Replies: {'swept', looked_at, expired, live, until_due, stalled, stalled_reissued, late_reissued, member, …}  if looked_at is at the
--                        limit, there may be more; live: how many the index has now; until_due: when the first of them is due (ms from
--                        now, below 0 if overdue), nil if there is none; stalled: how many of the expired missed a heartbeat;
--                        …_reissued: how many of those, and of the ones that weren't done in time, have a successor; the members only
--                        if they are to be named
--          {'late'}      the call's deadline is over; nothing changed
-- The script builds the handoffs' keys from the members: all carry the partition's tag, so all are in the slot of KEYS[1].
-- While a slot moves, a key that isn't here may still be on the node that it comes from. A handoff's key outlives its place in the index by
-- the retention. Until that is over, a missing key or a missing entry in the waiting list isn't believed: it is looked for again after 1 s,
-- 2 s, 4 s, …, so that other members get their turn. The fraction of the score counts these looks (in 1/32): after n of them at least
-- 2^n - 1 s are over. Everything else that sets the score sets a whole number.
local due = KEYS[1]
local prefix, limit, naming, retention = ARGV[2], ARGV[3], ARGV[4] == '1', tonumber(ARGV[5])
local now, seconds, micros = clock()
micros = seconds .. micros
local members = redis.call('ZRANGE', due, '-inf', now, 'BYSCORE', 'LIMIT', 0, limit)

if late(ARGV[1], now) then return { 'late' } end
local expired, stalled, stalled_reissued, late_reissued, named, behind, successors = 0, 0, 0, 0, {}, {}, {}
local attempt, is_plain = { retention = retention, now = now, micros = micros }, true
for place, member in ipairs(members) do
  local key = prefix .. 'h:' .. member
  local record, extra, told = readDue(key, not is_plain)
  local status, approval, expires, until_done = string.match(record or '', DEADLINES)
  is_plain = not extra
  local beat = extra and status == 'caught' and string.match(extra, ' h(%d+)')
  -- A newer version's record is left to that version's sweep, so it stays in the index.
  local deadline = status == 'pending' and expires or status == 'caught' and (beat or until_done) or record and not status and now + 10000
  if deadline and tonumber(deadline) > now then
    -- The index was behind the record, as catch leaves it. The record counts.
    behind[#behind + 1], behind[#behind + 2] = deadline, member
    if status == 'pending' and approval ~= 'waiting' then enterOnceAvailable(key, member, extra, now) end
  else
    if deadline then
      local isStalled = beat and tonumber(beat) < tonumber(until_done)
      local pause = status == 'caught' and pauseBehind(extra)
      if pause then
        tryAgain(attempt, openOutbox(key, key, member), key, member, record, extra, told, pause, successors)
        if isStalled then stalled_reissued = stalled_reissued + 1 else late_reissued = late_reissued + 1 end
      else
        local outbox, over = openOutbox(key, key, member), (extra and '2:expired' or 'expired') .. string.match(record, ' .*')
        if status == 'pending' then leaveInbox(key, member, extra, approval) end
        redis.call('HSET', key, 's', over, unpack(status == 'pending' and { 'p', '' } or {}))
        -- Its TTL was for longer: it was the work's, or it might have been tried again.
        if extra and status == 'caught' then redis.call('PEXPIREAT', key, ms(deadline + retention)) end
        tell(outbox, micros, 'expired', member, over, extra)
      end
      if isStalled then stalled = stalled + 1 end
      expired = expired + 1
      if naming then named[expired] = member end
    end
    if not record or approval == 'waiting' then
      local waiting = prefix .. 'w:' .. string.match(member, '^[^:]+')
      local score = redis.call('ZRANGE', due, place - 1, place - 1, 'WITHSCORES')[2]
      local pause = 1000 * 2 ^ (score % 1 * 32)
      local again = now - math.floor(score) + pause - 1000 < retention and now + pause + score % 1 + 1 / 32
      if record then redis.call('HDEL', key, 't') end
      if (record or not again) and redis.call('ZREM', waiting, member) == 1 then
        redis.pcall('SPUBLISH', waiting, 'expired')
      elseif again then
        behind[#behind + 1], behind[#behind + 2] = again, member
      end
    end
  end
end
updateDue(due, #members, behind, successors)
local live = redis.call('ZCARD', due)
local first = live > 0 and redis.call('ZRANGE', due, 0, 0, 'WITHSCORES')
return { 'swept', #members, expired, live, first and first[2] - now, stalled, stalled_reissued, late_reissued, unpack(named) }
