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
