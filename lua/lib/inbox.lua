-- The list of a handoff's inbox, in the handoff's own partition (lib/entering.lua); nil if it is for none. By field x.
local function inboxOf(key, member, extra)
  local inbox = extra and string.match(extra, ' t(%S+)')
  return inbox and string.sub(key, 1, #key - #member - 2) .. 'i:' .. string.match(member, '^[^:]+:') .. inbox
end
-- While a slot moves, a list may already be on the other node. A write to a list that isn't here would be lost, and a removal would remove nothing.
-- So this asks for two keys together: if only one of them is here, Redis refuses the command, and the service calls the script again. `key` must
-- exist here, and nothing may be written before.
local function isHere(key, list)
  return redis.call('EXISTS', key, list) == 2
end
local function leaveList(key, list, member)
  if redis.call('ZREM', list, member) == 0 then isHere(key, list) end
end
