-- The handoff enters its inbox if the delay of its pass, or of its attempt, is over. One that a person approved after that has entered already, when
-- it was approved, and keeps its turn.
local function enterOnceAvailable(key, member, extra, now)
  local available = extra and string.match(extra, ' a(%d+)')
  local inbox = available and now >= tonumber(available) and inboxOf(key, member, extra)
  if inbox then
    isHere(key, inbox)
    if not redis.call('ZSCORE', inbox, member) then enterInbox(inbox, member, extra, available * 1000) end
  end
end
-- A handoff that ends while it is pending leaves its inbox.
local function leaveInbox(key, member, extra, approval)
  local inbox = inboxOf(key, member, extra)
  if inbox then leaveList(key, approval == 'waiting' and inbox .. ':waiting' or inbox, member) end
end
