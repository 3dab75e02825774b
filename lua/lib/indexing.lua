-- What index.lua does.
-- When a handoff failed for good, if it can be reissued; else nil. What nobody caught has no payload any more if it was
-- for no inbox, or if an older version's sweep freed it.
local function failedAt(key, status, expires, deadline, extra)
  if status == 'failed' or status == 'declined' then return string.match(extra, ' e(%d+)') end
  if status ~= 'expired' then return nil end
  if deadline ~= '' then return extra and string.match(extra, ' h(%d+)') or deadline end
  return redis.call('HSTRLEN', key, 'p') > 0 and expires or nil
end
-- An older version may have reissued it.
local function indexFailed(key, member, extra, ended, now)
  if extra and string.find(extra, ' i', 1, true) then return leaveFailed(key, member, extra) end
  local lists = openFailed(key, member, extra)
  for _, list in ipairs(lists) do
    if not redis.call('ZSCORE', list, member) then return enterFailed(lists, member, ended, now, RETENTION) end
  end
end
local function indexInInbox(inbox, member, record, status, approval, extra, now)
  if status == 'caught' then
    redis.call('SADD', inbox .. ':caught', member)
  else
    redis.call('SREM', inbox .. ':caught', member)
  end
  local available = tonumber(string.match(extra, ' a(%d+)') or nil)
  if not available then return end
  -- What is available by now, and not in the inbox's list yet, stays in this one: the sweep is to move it.
  if status ~= 'pending' or approval == 'waiting' or string.sub(record, 1, 2) == '3:' then
    redis.call('ZREM', inbox .. ':delayed', member)
  elseif now < available then
    redis.call('ZADD', inbox .. ':delayed', ms(available), member)
  end
end
local function indexAll(now)
  for _, key in ipairs(KEYS) do
    local record, extra = unpack(redis.call('HMGET', key, 's', 'x'))
    local status, approval, _, expires, _, _, deadline = string.match(record or '', RECORD)
    if status then
      local partition, member = string.match(key, '^([^}]*}:)h:(.*)$')
      local inbox, ended = inboxOf(key, member, extra), failedAt(key, status, expires, deadline, extra)
      if inbox then refuseWhileMoving(key, inbox) end
      if ended then indexFailed(key, member, extra, ended, now) end
      if status == 'pending' and approval == 'waiting' then
        isHere(key, partition .. 'inboxes')
        redis.call('ZADD', partition .. 'inboxes', 0, string.match(member, '^[^:]+:'))
      end
      if inbox then
        indexInInbox(inbox, member, record, status, approval, extra, now)
        if status == 'pending' or status == 'caught' or ended then nameInbox(inbox) end
      end
    end
  end
end
