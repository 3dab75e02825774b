#!lua flags=allow-oom
-- pending -> expired, caught -> expired: what is due in one partition, a bounded batch a call. What nobody caught is freed; what was
-- caught goes to the next attempt, where there is one, and else stays. The keys' own TTL was set with the deadline, so a handoff stays
-- readable as long as if no sweep had come. Only those who look at a waiting list or wait for a successor are told: who waits for
-- the handoff itself has known its deadline all along. What had to wait and can be caught by now enters its inbox.
-- KEYS: 1 prefix:{tag}:due   live handoffs by when to look at them
-- ARGV: 1 the call's deadline (ms)  2 prefix:{tag}:  3 how many at most  4 1: name those that expire; 0  5 retention (ms)
-- Replies: {'swept', looked_at, expired, live, until_due, stalled, stalled_reissued, late_reissued, member, …}  looked_at at the limit:
--                        there may be more; live: how many the index has now; until_due: when the first of these is due (ms from now,
--                        below 0 where it is overdue), nil where none is; stalled: how many of the expired missed a heartbeat;
--                        reissued: how many of these, and of those that weren't done in time, have a successor; the members where they
--                        are to be named
--          {'late'}      the call's deadline is over; nothing changed
-- The handoffs' keys are made here, from the members: all carry the partition's tag, so all lie in the slot of KEYS[1].
-- While a slot moves, what isn't here may be on the node that it comes from. A handoff's key outlives its place in the index by the
-- retention: until that is over its absence is not believed, nor that of its place in the waiting list, and it is looked for again
-- after 1 s, 2 s, 4 s, …, so that the others get their turn. The score's fraction counts these looks (in 1/32), for after n of them
-- 2^n - 1 s at least are over; whatever else sets the score sets a whole one.
local due = KEYS[1]
local prefix, limit, naming, retention = ARGV[2], ARGV[3], ARGV[4] == '1', tonumber(ARGV[5])
local now, micros = clock()
local members = redis.call('ZRANGE', due, '-inf', now, 'BYSCORE', 'LIMIT', 0, limit)

if late(ARGV[1], now) then return { 'late' } end
local expired, stalled, stalled_reissued, late_reissued, named, behind = 0, 0, 0, 0, {}, {}
for place, member in ipairs(members) do
  local key = prefix .. 'h:' .. member
  local record = redis.call('HGET', key, 's')
  local status, approval, expires, until_done = string.match(record or '', DEADLINES)
  local extra = record and string.sub(record, 1, 2) == '2:' and redis.call('HGET', key, 'x')
  local beat = extra and status == 'caught' and string.match(extra, ' h(%d+)')
  -- What a newer version wrote is for that version to sweep, so it stays in the index.
  local deadline = status == 'pending' and expires or status == 'caught' and (beat or until_done) or record and not status and now + 10000
  if deadline and tonumber(deadline) > now then
    -- The index was behind the record, as catch leaves it; the record is the truth.
    behind[#behind + 1], behind[#behind + 2] = deadline, member
    if status == 'pending' and approval ~= 'waiting' then enterOnceAvailable(key, member, extra, now) end
  else
    if deadline then
      local isStalled = beat and tonumber(beat) < tonumber(until_done)
      if status == 'caught' and isTriedAgain(extra) then
        local attempt = { outbox = openOutbox(key, key, member), key = key, due = due, member = member, record = record, extra = extra, retention = retention, now = now, micros = micros, kept = {} }
        endAttempt(attempt, 'expired', '', succeed(attempt, pauseBefore(extra)))
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
        redis.call('SPUBLISH', waiting, 'expired')
      elseif again then
        behind[#behind + 1], behind[#behind + 2] = again, member
      end
    end
  end
end
-- All at once, since they are the index's first; and last, so that nothing leaves it that was not looked at.
if #members > 0 then redis.call('ZREMRANGEBYRANK', due, 0, #members - 1) end
if #behind > 0 then redis.call('ZADD', due, unpack(behind)) end
local live = redis.call('ZCARD', due)
local first = live > 0 and redis.call('ZRANGE', due, 0, 0, 'WITHSCORES')
return { 'swept', #members, expired, live, first and first[2] - now, stalled, stalled_reissued, late_reissued, unpack(named) }
