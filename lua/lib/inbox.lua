-- The list of the inbox that a handoff is for, in its own partition (lib/entering.lua); nil for none. By field x.
local function inboxOf(key, member, extra)
  local inbox = extra and string.match(extra, ' t(%S+)')
  return inbox and string.sub(key, 1, #key - #member - 2) .. 'i:' .. string.match(member, '^[^:]+:') .. inbox
end
-- While its slot moves, a list may be on the other node: what is written to one that isn't here would be lost, or take nothing away there.
-- Redis refuses to tell of two keys then of which one isn't here, and the script is called again. `key` is here; nothing may be written before.
local function isHere(key, list)
  return redis.call('EXISTS', key, list) == 2
end
local function leaveList(key, list, member)
  if redis.call('ZREM', list, member) == 0 then isHere(key, list) end
end
