-- Dependents: handoffs that come after others (pass's `after`). While one of the others is open, the dependent is
-- blocked: pending, and instead of its inbox's list in prefix:{tag}:i:tenant:inbox:blocked, by when it expires (ms).
--   field b           a word for each handoff that it comes after: its id, as passed; once that one's last attempt has
--                     ended, a slash, the id of the last attempt, a slash, and how it ended
--   field x, word A   d if they must be done, e if they must have ended; a slash, how many are open; a slash, how many
--                     of them pass answered; once none is open, a slash, and since when (ms)
--   field x, word W   W1: it has dependents, in the set prefix:{tag}:d:tenant:id: the dependent's id, a slash, and the
--                     id that the dependent named
-- A release takes one id out of the open ones, so a second release changes nothing. A script that ends a handoff with
-- dependents releases them, or leaves the handoff in the due index until they are released (leaveDue). A handoff that
-- ends while it waits for others stays there too, until its notes at the others are removed. And the sweep checks
-- blocked handoffs again.
local function hasDependents(extra)
  return extra and string.find(extra, ' W', 1, true)
end
-- The open ids of field b.
local function openOnes(words)
  return (string.gsub(string.gsub(' ' .. words, ' [^ /]+/%S+', ''), '^ ', ''))
end
-- How many handoffs an ended one still waited for. Field x still counts the one whose end cancelled it.
local function leftOpen(extra, status)
  local open = tonumber(extra and string.match(extra, ' A%l/(%d+)') or 0)
  return status == 'cancelled' and open > 0 and not string.find(extra, ' y', 1, true) and open - 1 or open
end
-- They are kept for 40 days longer than their handoff's deadline, which moves. If the work takes even longer, the
-- sweep's question finds them missing, and notes them again.
local function keepDependents(dependents, ends)
  redis.call('PEXPIREAT', dependents, ms(ends + 3456000000))
end
local function dependentsOf(key, member)
  return string.sub(key, 1, #key - #member - 2) .. 'd:' .. member
end
-- The last attempt of each handoff whose key the call has; nil if a newer version wrote one. The last attempt is in the
-- same partition. `members` are tenant:id, in the order of the keys. An open one with a note of `dependent` is noted.
local function readStands(members, dependent)
  local stands = {}
  for member in string.gmatch(members, '%S+') do
    local key, tenant, named = KEYS[#stands + 1], string.match(member, '^([^:]+:)(.*)$')
    local partition, id = string.sub(key, 1, #key - #member), named
    local record, extra = unpack(redis.call('HMGET', key, 's', 'x'))
    local successor = record and extra and string.match(extra, ' i(%S+)')
    while successor do
      local next_key = partition .. tenant .. successor
      local next_record, next_extra = unpack(redis.call('HMGET', next_key, 's', 'x'))
      -- If the last attempt is gone already, the one before it is the last that is known.
      if not next_record and not isHere(key, next_key) then break end
      key, id, record, extra = next_key, successor, next_record, next_extra
      successor = extra and string.match(extra, ' i(%S+)')
    end
    local status, _, _, expires, _, _, deadline = string.match(record or '', RECORD)
    if record and not status then return nil end
    -- An overdue handoff is open until the sweep ends it, or makes its successor.
    local ends = status == 'pending' and expires or status == 'caught' and math.max(expires, deadline)
    stands[#stands + 1] = {
      key = key, member = tenant .. id, named = named, id = id, record = record, extra = extra, ends = ends,
      standing = ends and 'open' or status or 'gone'
    }
    local dependents = dependentsOf(key, tenant .. id)
    -- Also for who notes one: a second set would be made here while the first is on the other node.
    if ends and isHere(key, dependents) and dependent and hasDependents(extra) and
      redis.call('SISMEMBER', dependents, dependent .. '/' .. named) == 1 then
      stands[#stands].standing = 'noted'
    end
  end
  return stands
end
-- How each stands, and its last attempt, as a reply has it.
local function shownStands(stands)
  local reply = {}
  for _, one in ipairs(stands) do reply[#reply + 1], reply[#reply + 2] = one.standing, one.id end
  return reply
end
-- Notes at the open ones that this one comes after them. Where the note is there already, nothing is written.
local function noteDependent(stands, dependent)
  for _, one in ipairs(stands) do
    if one.ends then
      local dependents = dependentsOf(one.key, one.member)
      -- Two ids may have the same last attempt: then the second finds the note of the first.
      local record, extra = unpack(redis.call('HMGET', one.key, 's', 'x'))
      if not hasDependents(extra) then
        redis.call('HSET', one.key, 's', (string.gsub(record, '^%l', '2:%0')), 'x', (extra or '') .. ' W1')
      end
      local is_new = redis.call('SADD', dependents, dependent .. '/' .. one.named) == 1
      if is_new then keepDependents(dependents, one.ends) end
      one.standing = 'noted'
    end
  end
end
-- Removes the notes of noteDependent. Two ids may have the same last attempt, and so one set: one command removes both
-- notes, since it may empty the set.
local function forgetDependent(stands, dependent)
  local notes, sets = {}, {}
  for _, one in ipairs(stands) do
    local dependents = one.standing == 'noted' and dependentsOf(one.key, one.member)
    if dependents and not notes[dependents] then
      sets[#sets + 1] = dependents
      notes[dependents] = {}
    end
    local own = dependents and notes[dependents]
    if own then own[#own + 1] = dependent .. '/' .. one.named end
  end
  for _, dependents in ipairs(sets) do redis.call('SREM', dependents, unpack(notes[dependents])) end
end
-- pending -> cancelled, caught -> cancelled: all that is written but for the due index, which the caller sees to.
-- `words` say in field x when and by whom. Returns the new field x.
local function becomeCancelled(outbox, key, member, record, extra, words, micros, ends)
  local status, approval = string.match(record, '^[2-5]?:?(%l+) (%S+)')
  local ended, runs = openEnded(key, member, extra), openRuns(key, member, extra)
  if approval == 'waiting' then
    local waiting, inbox = waitingList(key, member, extra), inboxOf(key, member, extra)
    if inbox then isHere(key, inbox .. ':waiting') end
    leaveList(key, waiting, member)
    redis.call('HDEL', key, 't')
    redis.pcall('SPUBLISH', waiting, 'cancelled')
  end
  if status == 'pending' then leaveInbox(key, member, extra, approval) end
  extra = (dropCheckpoint(key, extra) or '') .. words
  record = markOf(record) .. 'cancelled' .. string.match(record, ' .*')
  redis.call('HSET', key, 's', record, 'x', extra, 'p', '')
  redis.call('PEXPIREAT', key, ms(ends))
  redis.pcall('SPUBLISH', key, 'cancelled')
  append(outbox, micros, 'cancelled', member, record, extra)
  local now = math.floor(micros / 1000)
  if ended then enterOver(ended, member, ms(now), now) end
  if runs then endRuns(runs, member, 'other', nil, now, micros) end
  return record, extra
end
-- A handoff that this one comes after has ended, as its last attempt `last`, and isn't open any more. If it had to be
-- done and isn't, this one is cancelled; if no other is open, this one can be caught, or enters its list. Returns what
-- became of this one, and its new field x; nil if it doesn't wait for that one (any more).
local function release(key, due, member, named, last, status, now, micros)
  local record, extra, after = unpack(redis.call('HMGET', key, 's', 'x', 'b'))
  if not record or not isBlockedRecord(record) or string.sub(record, 3, 10) ~= 'pending ' then return nil end
  local _, approval, _, expires = string.match(record, RECORD)
  -- For all who read it, it has expired; the sweep ends it.
  if now >= tonumber(expires) then return nil end
  local words = ' ' .. after .. ' '
  local from, upto = string.find(words, ' ' .. named .. ' ', 1, true)
  if not from then return nil end
  after = string.sub(words, 2, upto - 1) .. '/' .. last .. '/' .. status .. string.sub(words, upto, -2)
  local need, open, shown = string.match(extra, ' A(%l)/(%d+)/(%d+)')
  open = open - 1
  if need == 'd' and status ~= 'done' then
    local outbox = openOutbox(key, key, member)
    openCalls(key, member, extra)
    record, extra = becomeCancelled(outbox, key, member, record, extra, ' e' .. ms(now) .. ' k-', micros,
      now + RETENTION)
    redis.call('HSET', key, 'b', after, 'c', '"' .. named .. ', which this comes after, ' ..
      (status == 'gone' and 'is gone' or 'has ended: ' .. status) .. '."')
    return 'cancelled', extra
  end
  extra = string.gsub(extra, ' A%S+', ' A' .. need .. '/' .. ms(open) .. '/' .. shown ..
    (open > 0 and '' or '/' .. ms(now)))
  if open > 0 then
    redis.call('HSET', key, 'x', extra, 'b', after)
    return 'blocked', extra
  end
  local available = string.match(extra, ' a(%d+)')
  available = available and now < tonumber(available) and available
  local inbox = approval ~= 'waiting' and inboxOf(key, member, extra)
  if inbox then
    refuseWhileMoving(key, inbox)
    leaveList(key, inbox .. ':blocked', member)
    enterPart(inbox, member, extra, micros, nil, available)
  end
  redis.call('HSET', key, 's', markOf(record) .. string.sub(record, 3), 'x', extra, 'b', after)
  setDue(key, due, available or expires, member, now)
  redis.pcall('SPUBLISH', key, 'released')
  return 'released', extra
end
--@if oneredis
-- An ended handoff leaves the due index. One Redis has all dependents, so the first 100 are released in the same step,
-- also those of handoffs that a release cancels: in a loop, since a chain may be long. A handoff that has dependents
-- left, or notes at others, stays in the index, due now: the sweep goes on with it (store/dependents.ts). Returns the
-- ids of the handoffs that stay.
local function leaveDue(key, due, member, extra, status, now, micros)
  local prefix, tenant = string.match(key, '^[^{]*{'), string.match(member, '^[^:]+:')
  local queue, left, at = { { key = key, due = due, member = member, extra = extra, status = status } }, 100, 1
  local rest = {}
  while queue[at] do
    local one = queue[at]
    local dependents, id = dependentsOf(one.key, one.member), string.sub(one.member, #tenant + 1)
    local has = hasDependents(one.extra)
    local found = has and redis.call('SRANDMEMBER', dependents, left) or {}
    if #found > 0 then redis.call('SREM', dependents, unpack(found)) end
    left = left - #found
    for _, dependent in ipairs(found) do
      local next_id, named = string.match(dependent, '^([^/]+)/(.+)$')
      local partition = prefix .. string.sub(next_id, 1, 3) .. '}:'
      local next = { key = partition .. 'h:' .. tenant .. next_id }
      next.due = partition .. 'due:' .. string.sub(tenant, 1, -2)
      next.member = tenant .. next_id
      local became
      became, next.extra = release(next.key, next.due, next.member, named, id, one.status, now, micros)
      if became == 'cancelled' then
        next.status = 'cancelled'
        queue[#queue + 1] = next
      end
    end
    if has and redis.call('SCARD', dependents) > 0 or leftOpen(one.extra, one.status) > 0 then
      setDue(one.key, one.due, now, one.member, now)
      rest[#rest + 1] = id
    else
      redis.call('ZREM', one.due, one.member)
    end
    at = at + 1
  end
  return rest
end
--@else
-- The same in a Cluster, where dependents are in other partitions: the sweeping replica releases them at its next look.
-- Returns the handoff's id, in a table, if it stays.
local function leaveDue(key, due, member, extra, status, now)
  if hasDependents(extra) or leftOpen(extra, status) > 0 then
    setDue(key, due, now, member, now)
    return { string.match(member, ':(.*)$') }
  end
  redis.call('ZREM', due, member)
  return {}
end
--@end
