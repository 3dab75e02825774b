-- What index.lua does.
local function indexAll(now)
  for _, key in ipairs(KEYS) do
    local record, extra = unpack(redis.call('HMGET', key, 's', 'x'))
    local status = string.match(record or '', RECORD)
    if status then
      local member = string.match(key, MEMBER)
      local due = string.sub(key, 1, #key - #member - 2) .. 'due:' .. string.match(member, '^[^:]+')
      isHere(key, due)
      local isThere = redis.call('ZSCORE', due, member)
      if status == 'pending' or status == 'caught' then
        -- The sweep looks at it at once, and then when it is due.
        if isThere then lookBy(key, due, now + LOOK, now) else setDue(key, due, now, member, now) end
      elseif isThere and (hasDependents(extra) or leftOpen(extra, status) > 0) then
        -- The sweep sees to what comes after it, or to its notes, and then takes it out.
        setDue(key, due, now, member, now)
      elseif isThere then
        redis.call('ZREM', due, member)
      end
    end
  end
end
