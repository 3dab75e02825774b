-- What comes after others (pass's `after`). While one of those is open, the handoff is blocked: pending, and instead of
-- its inbox's list in prefix:{tag}:i:tenant:inbox:blocked, by when it expires (ms).
--   field b           a word for each that it comes after, as passed: its id; once the last attempt of that has ended,
--                     a slash, the id of the last attempt, a slash, and how it ended
--   field x, word A   d if they must be done, e if they must have ended; a slash, how many are open; a slash, how many
--                     of them pass answered; once none is open, a slash, and since when (ms)
--   field x, word W   W1: others come after it. Then these are in prefix:{tag}:d:tenant:id, its dependents, a set: the
--                     id of the one that comes after, a slash, and the id that this one named
-- A release takes one id out of the open ones, so the second time it changes nothing. Whatever ends a handoff that has
-- dependents releases them, or leaves it in the due index until all of them are released: lib/ended-here.lua and
-- lib/ended-later.lua. Whatever ends while it waits for others stays there too, until its notes at those are removed.
-- And the sweep asks again how those stand that something waits for.
local function isBlocked(extra)
  local open = extra and string.match(extra, ' A%l/(%d+)')
  return open and open ~= '0'
end
local function hasDependents(extra)
  return extra and string.find(extra, ' W', 1, true)
end
-- The ids in field b of those that are open.
local function openOnes(words)
  return (string.gsub(string.gsub(' ' .. words, ' [^ /]+/%S+', ''), '^ ', ''))
end
-- How many an ended handoff still waited for. If one of them cancelled it, that one is still counted in field x.
local function leftOpen(extra, status)
  local open = tonumber(extra and string.match(extra, ' A%l/(%d+)') or 0)
  return status == 'cancelled' and open > 0 and not string.find(extra, ' y', 1, true) and open - 1 or open
end
-- They are kept for 40 days longer than their handoff's deadline, which moves when it is caught and with heartbeats. If
-- the work takes even longer, the sweep's question finds them missing, and notes them again.
local function keepDependents(dependents, ends)
  redis.call('PEXPIREAT', dependents, ms(ends + 3456000000))
end
local function dependentsOf(key, member)
  return string.sub(key, 1, #key - #member - 2) .. 'd:' .. member
end
