-- pending -> caught, once nothing is in the way: writes what a catch changes, and returns the fields s and x as they are now, and
-- the work's deadline.
local function becomeCaught(key, due, member, record, extra, expires, token, agent, work_ttl, retention, now)
  local deadline = now + (extra and string.match(extra, ' w(%d+)') or work_ttl)
  local looked_at = deadline
  -- The record only grows: its first word changes, and this transition's words follow.
  record = (extra and '2:caught' or 'caught') .. string.sub(record, extra and 10 or 8) .. ' ' .. ms(now) .. ' ' .. ms(deadline) .. ' ' .. agent .. ' ' .. token
  local within = extra and string.match(extra, ' b(%d+)')
  if within then
    looked_at = math.min(now + within, deadline)
    extra = extra .. ' h' .. ms(looked_at)
    redis.call('HSET', key, 's', record, 'x', extra)
  else
    redis.call('HSET', key, 's', record)
  end
  redis.call('PEXPIREAT', key, ms(deadline + retention + (hasAttemptsLeft(extra) and UNSWEPT or 0)))
  -- Where the deadline is the later one, the sweep finds out: it comes by too early then, looks at the record, and moves it on.
  if looked_at < tonumber(expires) then redis.call('ZADD', due, ms(looked_at), member) end
  redis.call('SPUBLISH', key, 'caught')
  return record, extra, deadline
end
