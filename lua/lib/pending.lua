-- The handoff enters its inbox if the delay of its pass, or of its attempt, is over. One that a person approved after
-- that, or that was blocked until later, entered then, and keeps its turn.
local function enterOnceAvailable(key, member, extra, now)
  local available = extra and string.match(extra, ' a(%d+)')
  local inbox = available and now >= tonumber(available) and inboxOf(key, member, extra)
  if inbox then
    local decided = string.match(redis.call('HGET', key, 'd') or '', '^%d+')
    local released = string.match(extra, ' A%l/0/%d+/(%d+)')
    if math.max(decided or 0, released or 0) >= tonumber(available) then return end
    refuseWhileMoving(key, inbox)
    redis.call('ZREM', inbox .. ':delayed', member)
    enterInbox(inbox, member, extra, available * 1000)
  end
end
-- A handoff that ends while it is pending leaves its inbox.
local function leaveInbox(key, member, extra, approval)
  local inbox = inboxOf(key, member, extra)
  if not inbox then return end
  if approval == 'waiting' then return leaveList(key, inbox .. ':waiting', member) end
  if isBlocked(extra) then return leaveList(key, inbox .. ':blocked', member) end
  leavePending(key, inbox, member, extra)
end
