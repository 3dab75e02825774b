-- An inbox in one partition: its list prefix:{tag}:i:tenant:inbox (lib/entering.lua), and beside it, with the same
-- beginning: `:delayed`, what can be caught later, by when; `:waiting`, what waits for a person, by when it expires;
-- `:blocked` (lib/after.lua); `:caught`, a set of what is caught; `:failed` (lib/failed.lua); `:places` (lib/room.lua);
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
