-- An inbox's list is a sorted set of what can be caught from it now, each scored by its turn: when it entered, in microseconds, less a
-- minute for each step of priority. The turn's last digit is that priority, so that the list alone tells when something entered; two that
-- enter in the same 10 microseconds have no order. Below 2^53 a score is exact: so it is until the year 2255.
local MINUTE = 60000000
-- The list of the inbox that a handoff is for, in its own partition; nil for none. By field x.
local function inboxOf(key, member, extra)
  local inbox = extra and string.match(extra, ' t(%S+)')
  return inbox and string.sub(key, 1, #key - #member - 2) .. 'i:' .. string.match(member, '^[^:]+:') .. inbox
end
-- While its slot moves, a list may be on the other node: what is written to one that isn't here would be lost, or take nothing away there.
-- Of two keys of which one isn't here Redis refuses to tell then, and it is asked again. `key` is here; nothing may be written before.
local function isHere(key, list)
  return redis.call('EXISTS', key, list) == 2
end
local function leaveList(key, list, member)
  if redis.call('ZREM', list, member) == 0 then isHere(key, list) end
end
local function enterInbox(inbox, member, extra, micros)
  local priority = tonumber(string.match(extra, ' u(%d)') or 0)
  redis.call('ZADD', inbox, ms(micros - micros % 10 + priority - priority * MINUTE), member)
  redis.call('SPUBLISH', inbox, 'passed')
end
-- A delay is over that it was passed with, or that its attempt waits for.
local function enterOnceAvailable(key, member, extra, now)
  local available = extra and string.match(extra, ' a(%d+)')
  local inbox = available and now >= tonumber(available) and inboxOf(key, member, extra)
  if inbox then
    isHere(key, inbox)
    enterInbox(inbox, member, extra, available * 1000)
  end
end
-- It ends while it is pending.
local function leaveInbox(key, member, extra, approval)
  local inbox = inboxOf(key, member, extra)
  if inbox then leaveList(key, approval == 'waiting' and inbox .. ':waiting' or inbox, member) end
end
