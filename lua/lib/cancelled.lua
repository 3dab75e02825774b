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
