-- A caught handoff leaves its inbox's set of those. Where their number is limited, the next catch may have room now.
-- The settings are read first: Redis may refuse that while the slot moves.
local function leaveCaught(key, member, extra)
  local inbox = inboxOf(key, member, extra)
  if not inbox then return end
  local settings = redis.call('GET', inbox .. ':settings')
  if redis.call('SREM', inbox .. ':caught', member) == 0 then isHere(key, inbox .. ':caught') end
  if settings then redis.pcall('SPUBLISH', inbox, 'ended') end
end
