-- Reads a handoff that is due: its fields s and x, and along with those what succeed needs (SET_ASIDE), if the handoff
-- before has field x: those that are due together are often alike.
local function readDue(key, along)
  if not along then
    local record = redis.call('HGET', key, 's')
    return record, record and string.sub(record, 2, 2) == ':' and redis.call('HGET', key, 'x')
  end
  local found = redis.call('HMGET', key, 'n', 'd', 'h', 'r', 'c', 'g', 's', 'x')
  local record = found[7]
  return record, record and string.sub(record, 2, 2) == ':' and found[8], found
end
-- Ends an attempt and makes the next one. The batch's own table serves as succeed's, since what that needs of the clock
-- is the same for all.
local function tryAgain(batch, outbox, key, member, record, extra, aside, pause)
  batch.outbox, batch.key, batch.member, batch.record, batch.extra, batch.aside, batch.kept =
    outbox, key, member, record, extra, aside, {}
  local next, successors = succeed(batch, pause), batch.successors
  endAttempt(batch, 'expired', '', next)
  successors[#successors + 1], successors[#successors + 2] = next.due, next.member
end
-- A missing key or a missing entry in the waiting list may be on the other node: it isn't taken for gone for a while
-- (sweep.lua). `is_named` says that the sweep looks at it again anyway.
local function leaveWaiting(batch, due, place, member, prefix, key, record, extra, is_named)
  local now, later = batch.now, batch.later
  local waiting = waitingList(key, member, extra)
  local score = redis.call('ZRANGE', due, place - 1, place - 1, 'WITHSCORES')[2]
  local pause = 1000 * 2 ^ (score % 1 * 32)
  local again = now - math.floor(score) + pause - 1000 < batch.retention and now + pause + score % 1 + 1 / 32
  -- What was for an inbox can be reissued, and then waits for a person again.
  if record and not inboxOf(key, member, extra) then redis.call('HDEL', key, 't') end
  if (record or not again) and redis.call('ZREM', waiting, member) == 1 then
    redis.pcall('SPUBLISH', waiting, 'expired')
  elseif again and not is_named then
    later[#later + 1], later[#later + 2] = again, member
  end
end
-- When the sweep looks at a caught handoff again: at its deadline, or at the end of its question if that comes first.
-- Ends a question whose time is over.
local function lookAtQuestion(batch, key, member, record, extra, deadline)
  local ask = openAsk(key, member, extra)
  if not ask then return deadline end
  if batch.now < ask.expires then return math.min(ask.expires, tonumber(deadline)) end
  local outbox = openOutbox(key, key, member)
  openCalls(key, member, extra)
  redis.call('HSET', key, 'x', endAsk(ask, outbox, batch.micros, member, record, extra, batch.now))
  return deadline
end
-- Names a blocked handoff, so that the replica checks the handoffs that it waits for: an end may have been missed, or a
-- note. The older the handoff is, the later it is checked. Checks soon after the pass are a list of their own, for
-- notes that a failover lost, or that a replica didn't live to write. So is the first check, however late an outage
-- made it: until then the index has the handoff under the time of its pass.
local function lookAtBlocked(batch, due, member, record, deadline)
  local created = string.match(record, '^%S+ %S+ (%d+)')
  local age = batch.now - created
  local isFresh = age < 10000 or redis.call('ZSCORE', due, member) == created
  local list, later = isFresh and batch.fresh or batch.blocked, batch.later
  list[#list + 1] = member
  later[#later + 1], later[#later + 2] = math.min(deadline, batch.now + math.min(300000, math.max(3000, age))), member
end
-- Names an ended handoff that has dependents, or waited for others. The sweeping replica releases the dependents, and
-- removes its notes (store/dependents.ts); until then the sweep names it every second.
local function nameEnded(batch, member, list)
  batch.later[#batch.later + 1], batch.later[#batch.later + 2] = batch.now + 1000, member
  list[#list + 1] = member
end
-- Sweeps a handoff of any kind. The batch is one table for the script: the clock's now and micros, the retention, what
-- is counted, `named` for the members that expire (or false), `ended`, `fresh` and `blocked` for those that the replica
-- is to see to, and scores and members for the index: `later` of those that go on, and `successors`.
local function sweepOne(batch, due, place, member, prefix)
  local now, key, named, later = batch.now, prefix .. 'h:' .. member, batch.named, batch.later
  local record, extra, aside = readDue(key, batch.was_extra)
  batch.was_extra = extra
  local status, approval, expires, until_done = string.match(record or '', DEADLINES)
  local beat = extra and status == 'caught' and string.match(extra, ' h(%d+)')
  -- A newer version's record is left to that version's sweep, so it stays in the index.
  local deadline = status == 'pending' and expires or status == 'caught' and (beat or until_done) or
    record and not status and now + 10000
  if deadline and tonumber(deadline) > now then
    if record and isBlockedRecord(record) then return lookAtBlocked(batch, due, member, record, deadline) end
    if status == 'caught' then deadline = lookAtQuestion(batch, key, member, record, extra, deadline) end
    -- The index is older than the record, as catch leaves it. The record counts.
    later[#later + 1], later[#later + 2] = deadline, member
    if status == 'pending' and approval ~= 'waiting' then enterOnceAvailable(key, member, extra, now) end
    return
  end
  local has_ended = record and not deadline
  if deadline then
    local isStalled = beat and tonumber(beat) < tonumber(until_done)
    local pause = status == 'caught' and pauseBehind(extra)
    openCalls(key, member, extra)
    if pause then
      tryAgain(batch, openOutbox(key, key, member), key, member, record, extra, aside, pause)
      local count = isStalled and 'stalled_reissued' or 'late_reissued'
      batch[count] = batch[count] + 1
    else
      local outbox, over = openOutbox(key, key, member),
        (extra and markOf(record) .. 'expired' or 'expired') .. string.match(record, ' .*')
      -- An uncaught handoff without an inbox can't be reissued.
      local isFreed = status == 'pending' and not inboxOf(key, member, extra)
      local lists = not isFreed and openFailed(key, member, extra)
      local ended, runs = openEnded(key, member, extra), openRuns(key, member, extra)
      local ask
      if status == 'pending' then
        leaveInbox(key, member, extra, approval)
      else
        extra, ask = leaveWork(outbox, batch.micros, key, member, record, extra, now)
        if ask then redis.call('HSET', key, 'x', extra) end
      end
      if isFreed and extra and string.find(extra, ' K', 1, true) then
        extra = dropCheckpoint(key, extra)
        redis.call('HSET', key, 'x', extra)
      end
      if lists then enterFailed(lists, member, deadline, now) end
      if ended then enterOver(ended, member, ms(now), now) end
      if runs then endRuns(runs, member, lists and 'failed' or 'other', nil, now, batch.micros) end
      redis.call('HSET', key, 's', over, unpack(isFreed and { 'p', '' } or {}))
      -- Its TTL was for longer: it was the work's, or it might have been tried again.
      if extra and status == 'caught' then redis.call('PEXPIREAT', key, ms(deadline + batch.retention)) end
      append(outbox, batch.micros, 'expired', member, over, extra)
    end
    if isStalled then batch.stalled = batch.stalled + 1 end
    batch.expired = batch.expired + 1
    if named then named[#named + 1] = member end
    has_ended = not pause
  end
  local is_named = has_ended and (hasDependents(extra) and batch.ended or
    leftOpen(extra, deadline and 'expired' or status) > 0 and batch.fresh)
  if is_named then nameEnded(batch, member, is_named) end
  if not record or approval == 'waiting' then
    leaveWaiting(batch, due, place, member, prefix, key, record, extra, is_named)
  end
end
