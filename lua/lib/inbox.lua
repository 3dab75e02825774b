-- The list of a handoff's inbox, in the handoff's own partition (lib/entering.lua); nil if it is for none. By field x.
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
