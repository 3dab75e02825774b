-- pending -> caught, after all checks. Writes what a catch changes, and returns the new fields s and x and the work's deadline.
local function becomeCaught(key, due, member, record, extra, expires, token, agent, work_ttl, retention, now)
  local deadline = now + (extra and string.match(extra, ' w(%d+)') or work_ttl)
  local looked_at = deadline
  -- The record only grows: its first word changes, and this transition's words are appended.
  record = (extra and '2:caught' or 'caught') .. string.sub(record, extra and 10 or 8) .. ' ' .. ms(now) .. ' ' .. ms(deadline) .. ' ' .. agent .. ' ' .. token
  local within = extra and string.match(extra, ' b(%d+)')
  if within then
    looked_at = math.min(now + within, deadline)
    extra = extra .. ' h' .. ms(looked_at)
    redis.call('HSET', key, 's', record, 'x', extra)
  else
    redis.call('HSET', key, 's', record)
  end
  redis.call('PEXPIREAT', key, ms(deadline + retention + (attemptBeforeOthers(extra) and UNSWEPT or 0)))
  -- If the work's deadline is later than the pickup's, the index stays as it is: the sweep comes too early, looks at the record, and moves the
  -- entry on.
  if looked_at < tonumber(expires) then redis.call('ZADD', due, ms(looked_at), member) end
  redis.call('SPUBLISH', key, 'caught')
  return record, extra, deadline
end
