-- While a slot moves, a key may be on the other node. It isn't found here then, and a write would make another one. So
-- this asks for two keys together: if only one of them is here, Redis refuses the command, and the service calls the
-- script again. `key` must exist here, and nothing may be written before. Nor may a script use a key again that it
-- emptied: Redis would look for that on the other node too, and the script would break off half done.
local function isHere(key, other)
  return redis.call('EXISTS', key, other) == 2
end
-- An inbox in one partition: its list prefix:{tag}:i:tenant:inbox (lib/inbox.lua), and beside it, with the same
-- beginning: `:delayed`, what can be caught later, by when; `:waiting`, what waits for a person, by when it expires;
-- `:blocked` (lib/after.lua); `:caught`, a set of what is caught; `:failed` (lib/successor.lua); `:places` (lib/taking.lua);
-- and `:settings`, a string of what operators set: paused (1, or 0), max_caught, max_pending (0 for none), and
-- when they were set (microseconds). Most inboxes have none. An inbox has two partitions: its own, and its tenant's
-- home, where what a person decides on is.
-- prefix:{tag}:inboxes names those that have something in the partition, as tenant:inbox, all with the score 0; and as
-- tenant: those tenants of which something waits for a person. Names leave it later (inbox-tidy.lua).
-- The list of a handoff's inbox, in the handoff's own partition; nil if it is for none. By field x.
local function inboxOf(key, member, extra)
  local inbox = extra and string.match(extra, ' t(%S+)')
  return inbox and string.sub(key, 1, #key - #member - 2) .. 'i:' .. string.match(member, '^[^:]+:') .. inbox
end
-- Is it for none, or for one of the inboxes that the key is limited to? They stand between spaces; nil for any.
local function isAddressed(extra, inboxes)
  local inbox = inboxes and extra and string.match(extra, ' t(%S+)')
  return not inbox or string.find(inboxes, ' ' .. inbox .. ' ', 1, true)
end
-- A removal from a list that is on the other node would remove nothing.
local function leaveList(key, list, member)
  if redis.call('ZREM', list, member) == 0 then isHere(key, list) end
end
-- What was passed with a delay, or waits until it is tried again, may be in either list until the sweep has moved it.
local function leavePending(key, inbox, member, extra)
  if redis.call('ZREM', inbox, member) == 1 then return end
  leaveList(key, string.find(extra, ' a', 1, true) and inbox .. ':delayed' or inbox, member)
end
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
-- Does it wait for others that it comes after (lib/after.lua)?
local function isBlocked(extra)
  local open = extra and string.match(extra, ' A%l/(%d+)')
  return open and open ~= '0'
end
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
