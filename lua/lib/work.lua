-- The reply that a handoff is over, by its status or by the clock; nil if it isn't.
local function overAs(key, record, extra, now, status, expires, deadline)
  local over = status == 'caught' and deadline or status == 'pending' and expires
  local beat = extra and status == 'caught' and string.match(extra, ' h(%d+)')
  if status == 'expired' or over and now >= tonumber(over) or beat and now >= tonumber(beat) then
    return { 'expired', now, record, extra }
  end
  if status == 'rejected' then return { 'rejected', now, record, extra, redis.call('HGET', key, 'd') } end
  if status == 'cancelled' then return { 'cancelled', now, record, extra } end
  if status == 'done' then return { 'already_done', now, record, extra } end
  if status == 'failed' then return { 'already_failed', now, record, extra } end
  if status == 'declined' then return { 'already_declined', now, record, extra } end
end
-- The reply that refuses an agent's report about its work, or {'replayed'} if the operation was carried out before; nil
-- if the report is allowed. The checks have the order of docs/api.md, "Order".
local function unheld(key, record, extra, agent, tokens, now)
  if not record then return { 'not_found' } end
  local status, _, _, expires, _, _, deadline, caught_by, _, finished = string.match(record, RECORD)
  if not status then return { 'newer' } end
  if caught_by == agent and status ~= 'caught' then
    local made_by = status == 'done' and string.match(finished, '%S+$') or extra and string.match(extra, ' k(%S+)')
    if isAmong(tokens, made_by) then return { 'replayed', now, record, extra } end
  end
  local over = overAs(key, record, extra, now, status, expires, deadline)
  -- Only the catcher sees how its work ended.
  local isOthers = caught_by ~= agent
  if over and not (isOthers and (status == 'done' or status == 'failed' or status == 'declined')) then return over end
  if status == 'pending' then return { 'not_caught', now, record, extra } end
  if isOthers then return { 'not_the_catcher', now, record, extra } end
end
-- The number of an attempt that has others left after it, by field x; nil if it is the last or the only one.
local function attemptBeforeOthers(extra)
  local max = extra and string.match(extra, ' m(%d+)')
  local number = max and tonumber(string.match(extra, ' n(%d+)') or 1)
  return max and number < tonumber(max) and number or nil
end
-- How much longer than the retention a key is kept if the sweep may still have to make a successor of it, in
-- milliseconds. So its payload isn't lost, even if no sweep comes for that long.
local UNSWEPT = 604800000
-- Keeps a caught handoff until its work is over, and then for the retention.
local function keepWork(key, until_done, retention, extra)
  redis.call('PEXPIREAT', key, ms(until_done + retention + (attemptBeforeOthers(extra) and UNSWEPT or 0)))
end
-- Field x with what the worker calls itself; the same field x if that is known. The latest stands.
local function withWorker(extra, worker)
  if extra and string.find(extra .. ' ', ' N' .. worker .. ' ', 1, true) then return extra end
  return string.gsub(extra or '', ' N%S+', '') .. ' N' .. worker
end
-- The checkpoint: field k, and a word of field x. It is where the payload is, moves on with it, and goes when it goes.
local function withCheckpoint(extra, agent, now)
  return string.gsub(extra or '', ' K%S+', '') .. ' K' .. ms(now) .. '/' .. agent
end
-- False if there is none.
local function checkpointOf(key, extra)
  return extra and string.find(extra, ' K', 1, true) and redis.call('HGET', key, 'k')
end
--@include locks
-- The name of the first key that this replica lacks of those that sealed a handoff's payload (by field x), its decision
-- and its checkpoint; nil if it has all. A note that isn't sealed is JSON, and begins with a quote or an n.
local function lockOn(extra, decision, checkpoint)
  local third, note = string.match(decision or '', '^%d+ %S+ (%S+) (.*)$')
  local names = {
    string.match(extra or '', ' E(%S+)') or false, string.match(note or '', '^~(........)') or false,
    string.match(third or '', '^[^/]+/~(........)') or false, string.match(third or '', '%.~(........)[^.]*$') or false,
    string.match(checkpoint or '', '^[\1\2](........)') or false
  }
  for at = 1, 5 do
    local name = names[at]
    if name and isMissing(name) then return name end
  end
end
-- pending -> caught, after all checks. Writes the change, and returns the new fields s and x and the work's deadline.
-- `words` are caught_by and catch_token, `formatted` is now as text; the worker is nil if it says nothing.
local function becomeCaught(key, due, record, extra, expires, words, work_ttl, retention, now, formatted, worker)
  local deadline = now + (extra and string.match(extra, ' w(%d+)') or work_ttl)
  local looked_at = deadline
  -- The record only grows: its first word changes, and this transition's words are appended.
  local mark = extra and string.sub(record, 1, 2) or worker and '2:' or ''
  record = mark .. 'caught' .. string.sub(record, extra and 10 or 8) ..
    ' ' .. formatted .. ' ' .. string.format('%d', deadline) .. ' ' .. words
  local within = extra and string.match(extra, ' b(%d+)')
  if worker then extra = withWorker(extra, worker) end
  if within then
    looked_at = math.min(now + within, deadline)
    extra = extra .. ' h' .. string.format('%d', looked_at)
    redis.call('HSET', key, 's', record, 'x', extra)
  elseif worker then
    redis.call('HSET', key, 's', record, 'x', extra)
  else
    redis.call('HSET', key, 's', record)
  end
  keepWork(key, deadline, retention, extra)
  -- If the work's deadline is later than the pickup's, the index stays as it is: the sweep comes too early, looks at
  -- the record, and moves the entry on.
  if looked_at < expires + 0 then setDue(key, due, looked_at, string.match(key, MEMBER), now) end
  redis.pcall('SPUBLISH', key, 'caught')
  return record, extra, deadline
end
-- A caught handoff leaves its inbox's set of caught ones. If their number is limited, the next may be caught now.
-- The settings are read before the write, since Redis may refuse to read them.
local function leaveCaught(key, member, extra)
  local inbox = inboxOf(key, member, extra)
  if not inbox then return end
  local settings = redis.call('GET', inbox .. ':settings')
  if redis.call('SREM', inbox .. ':caught', member) == 0 then isHere(key, inbox .. ':caught') end
  if settings then redis.pcall('SPUBLISH', inbox, 'ended') end
end
-- The same of one that may have a group.
local function leaveAllCaught(key, member, extra, micros)
  local inbox, group = inboxOf(key, member, extra), groupOf(extra)
  local limit, place
  if group then
    redis.call('EXISTS', key, inbox .. ':caught', groupKeys(inbox))
    limit, place = perGroupIn(inbox)
  end
  leaveCaught(key, member, extra)
  if group and leaveCaughtGroup(inbox, group, member, micros, limit, place) then
    redis.pcall('SPUBLISH', inbox, 'ended')
  end
end
