-- What ended without being done and gets no successor by itself: a partition's list of each tenant
-- (prefix:{tag}:f:tenant), and one of each inbox (prefix:{tag}:i:tenant:inbox:failed), by when it ended (ms). An entry
-- leaves when the handoff is reissued, or when it is gone.
local function failedLists(key, member, extra)
  local partition, inbox = string.sub(key, 1, #key - #member - 2), inboxOf(key, member, extra)
  return { partition .. 'f:' .. string.match(member, '^[^:]+'), inbox and inbox .. ':failed' or nil }
end
-- A list of a moving slot may be on the other node: this comes before the first write.
local function openFailed(key, member, extra)
  local lists = failedLists(key, member, extra)
  for _, list in ipairs(lists) do isHere(key, list) end
  return lists
end
-- An entry outlives its handoff until others come or the whole list's TTL ends. Each that comes removes up to 100 of
-- those, so no call has many to remove. The entry comes first, so that the list is never empty (lib/here.lua).
local function enterFailed(lists, member, ended, now, retention)
  for _, list in ipairs(lists) do
    redis.call('ZADD', list, ms(ended), member)
    redis.call('PEXPIREAT', list, ms(now + retention))
    -- It stays, also if it ended as long ago itself, before the sweep saw it.
    local gone = math.min(100, redis.call('ZCOUNT', list, '-inf', '(' .. ms(math.min(now - retention, ended))))
    if gone > 0 then redis.call('ZREMRANGEBYRANK', list, 0, gone - 1) end
  end
end
local function leaveFailed(key, member, extra)
  for _, list in ipairs(failedLists(key, member, extra)) do redis.call('ZREM', list, member) end
end
