-- pending -> caught, after all checks. Writes what a catch changes, and returns the new fields s and x and the work's
-- deadline. `words` are caught_by and catch_token, `formatted` is now as text.
local function becomeCaught(key, due, record, extra, expires, words, work_ttl, retention, now, formatted)
  local deadline = now + (extra and string.match(extra, ' w(%d+)') or work_ttl)
  local looked_at = deadline
  -- The record only grows: its first word changes, and this transition's words are appended.
  record = (extra and '2:caught' or 'caught') .. string.sub(record, extra and 10 or 8) ..
    ' ' .. formatted .. ' ' .. string.format('%d', deadline) .. ' ' .. words
  local within = extra and string.match(extra, ' b(%d+)')
  if within then
    looked_at = math.min(now + within, deadline)
    extra = extra .. ' h' .. string.format('%d', looked_at)
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
