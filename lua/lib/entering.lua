-- An inbox's list is a sorted set of what can be caught from it now. The score is the turn: when a handoff entered, in
-- microseconds, less a minute for each step of priority. The last digit is that priority, so the list alone tells when
-- something entered; two that enter within the same 10 microseconds have no order. A score is exact below 2^53: until
-- the year 2255.
local MINUTE = 60000000
-- It is among the inboxes that have something (lib/inbox.lua).
local function nameInbox(inbox)
  local partition, name = string.match(inbox, '^([^}]*}:)i:(.*)$')
  redis.call('ZADD', partition .. 'inboxes', 0, name)
end
local function enterInbox(inbox, member, extra, micros)
  local priority = tonumber(string.match(extra, ' u(%d)') or 0)
  redis.call('ZADD', inbox, string.format('%d', micros - micros % 10 + priority - priority * MINUTE), member)
  -- While others are in the list, it has its name: all that enter see to it, and now and then one of them does.
  if micros % 32 == 0 or redis.call('ZCARD', inbox) == 1 then nameInbox(inbox) end
  redis.pcall('SPUBLISH', inbox, 'passed')
end
-- It enters what it belongs to: what waits for a person, where it is undecided until then; what comes after others,
-- where it is blocked, at the most until then; what can be caught later, where it is available only then; or the
-- inbox's list. The times (ms) may be nil.
local function enterPart(inbox, member, extra, micros, undecided, available, blocked)
  if not undecided and not available and not blocked then return enterInbox(inbox, member, extra, micros) end
  redis.call('ZADD', inbox .. (undecided and ':waiting' or blocked and ':blocked' or ':delayed'),
    undecided or blocked or available, member)
  nameInbox(inbox)
end
-- A list of a moving slot may be on the other node: Redis refuses to look for several keys of which some are missing.
-- This comes before the first write. `key` must exist here.
local function refuseWhileMoving(key, inbox)
  local partition = string.match(inbox, '^[^}]*}:')
  redis.call('EXISTS', key, inbox, inbox .. ':delayed', inbox .. ':blocked', inbox .. ':caught', partition .. 'inboxes')
end
