-- pending -> cancelled, caught -> cancelled: all that is written but for the due index, which the caller sees to.
-- `words` say in field x when and by whom. Returns the new field x.
local function becomeCancelled(outbox, key, member, record, extra, words, micros, ends)
  local status, approval = string.match(record, '^[23]?:?(%l+) (%S+)')
  -- The script builds the lists' keys, since most handoffs are in none. A list may be on another node: then Redis
  -- refuses what looks for it, before anything is written.
  if approval == 'waiting' then
    local waiting = string.sub(key, 1, #key - #member - 2) .. 'w:' .. string.match(member, '^[^:]+')
    local inbox = inboxOf(key, member, extra)
    if inbox then isHere(key, inbox .. ':waiting') end
    leaveList(key, waiting, member)
    redis.call('HDEL', key, 't')
    redis.pcall('SPUBLISH', waiting, 'cancelled')
  end
  if status == 'pending' then leaveInbox(key, member, extra, approval) end
  extra = (extra or '') .. words
  record = '2:cancelled' .. string.match(record, ' .*')
  redis.call('HSET', key, 's', record, 'x', extra, 'p', '')
  redis.call('PEXPIREAT', key, ms(ends))
  redis.pcall('SPUBLISH', key, 'cancelled')
  append(outbox, micros, 'cancelled', member, record, extra)
  return record, extra
end
-- Something that a handoff comes after has ended, as its last attempt `last`. Takes it out of the open ones; if none is
-- left, the handoff can be caught, or enters what it belongs to; if it had to be done and isn't, the handoff is
-- cancelled. Returns what became of the handoff, and its new field x; nil if it doesn't wait for this (any more).
local function release(key, due, member, named, last, status, now, micros)
  local record, extra, after = unpack(redis.call('HMGET', key, 's', 'x', 'b'))
  if not record or string.sub(record, 1, 10) ~= '3:pending ' then return nil end
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
  redis.call('HSET', key, 's', '2' .. string.sub(record, 2), 'x', extra, 'b', after)
  setDue(key, due, available or expires, member, now)
  redis.pcall('SPUBLISH', key, 'released')
  return 'released', extra
end
--@if oneredis
-- A handoff that ended leaves the due index. One Redis has all that comes after it, so the first 100 of those are
-- released in the same step, and what is cancelled by that counts with its own dependents. Whoever has dependents left
-- stays in the index, due now: the sweep goes on with them (store/dependents.ts). So does what waited for others, until
-- its notes there are removed. A long chain is no deep recursion. Returns the ids of those that stay.
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
-- A handoff that ended leaves the due index. If others come after it, it stays there until they are released: they are
-- in other partitions, so the replica that sweeps does that (store/dependents.ts), as soon as it looks. It also
-- stays if it waited for others, until its notes there are removed. Returns its id if it stays, in a table.
local function leaveDue(key, due, member, extra, status, now)
  if hasDependents(extra) or leftOpen(extra, status) > 0 then
    setDue(key, due, now, member, now)
    return { string.match(member, ':(.*)$') }
  end
  redis.call('ZREM', due, member)
  return {}
end
--@end
