-- What comes after others (pass's `after`). While one of those is open, the handoff is blocked: pending, and instead of
-- its inbox's list in prefix:{tag}:i:tenant:inbox:blocked, by when it expires (ms).
--   field b           a word for each that it comes after, as passed: its id; once the last attempt of that has ended,
--                     a slash, the id of the last attempt, a slash, and how it ended
--   field x, word A   d if they must be done, e if they must have ended; a slash, how many are open; a slash, how many
--                     of them pass answered; once none is open, a slash, and since when (ms)
--   field x, word W   W1: others come after it. Then these are in prefix:{tag}:d:tenant:id, its dependents, a set: the
--                     id of the one that comes after, a slash, and the id that this one named
-- A release takes one id out of the open ones, so the second time it changes nothing. Whatever ends a handoff that has
-- dependents releases them, or leaves it in the due index until all of them are released: lib/ending.lua and
-- lib/ending.lua. Whatever ends while it waits for others stays there too, until its notes at those are removed.
-- And the sweep asks again how those stand that something waits for.
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
-- The last attempt of each handoff whose key the call has; nil if a newer version wrote one. The last attempt is in the
-- same partition. `members` are tenant:id, in the order of the keys.
local function readStands(members)
  local stands = {}
  for member in string.gmatch(members, '%S+') do
    local key, tenant, named = KEYS[#stands + 1], string.match(member, '^([^:]+:)(.*)$')
    local partition, id = string.sub(key, 1, #key - #member), named
    local record, extra = unpack(redis.call('HMGET', key, 's', 'x'))
    local successor = record and extra and string.match(extra, ' i(%S+)')
    while successor do
      local next_key = partition .. tenant .. successor
      local next_record, next_extra = unpack(redis.call('HMGET', next_key, 's', 'x'))
      -- If it is gone already, what is known last is the attempt before it.
      if not next_record and not isHere(key, next_key) then break end
      key, id, record, extra = next_key, successor, next_record, next_extra
      successor = extra and string.match(extra, ' i(%S+)')
    end
    local status, _, _, expires, _, _, deadline = string.match(record or '', RECORD)
    if record and not status then return nil end
    -- What is over by the clock and not swept yet is open: the sweep ends it, or makes its successor.
    local ends = status == 'pending' and expires or status == 'caught' and math.max(expires, deadline)
    stands[#stands + 1] = {
      key = key, member = tenant .. id, named = named, id = id, record = record, extra = extra, ends = ends,
      standing = ends and 'open' or status or 'gone'
    }
    -- The set may be on the other node. Once the slot has moved, there would be only one of it and a new one here.
    if ends and isHere(key, dependentsOf(key, tenant .. id)) and hasDependents(extra) then
      stands[#stands].standing = 'noted'
    end
  end
  return stands
end
-- How each stands, and its last attempt, as a reply has it.
local function shownStands(stands)
  local reply = {}
  for _, one in ipairs(stands) do reply[#reply + 1], reply[#reply + 2] = one.standing, one.id end
  return reply
end
-- Notes at the open ones that this one comes after them. Where the note is there already, nothing is written.
local function noteDependent(stands, dependent)
  for _, one in ipairs(stands) do
    if one.ends then
      local dependents = dependentsOf(one.key, one.member)
      -- Two of them may have the same last attempt: then the second finds what was written for the first.
      local record, extra = unpack(redis.call('HMGET', one.key, 's', 'x'))
      if not hasDependents(extra) then
        redis.call('HSET', one.key, 's', (string.gsub(record, '^%l', '2:%0')), 'x', (extra or '') .. ' W1')
      end
      local is_new = redis.call('SADD', dependents, dependent .. '/' .. one.named) == 1
      if is_new then keepDependents(dependents, one.ends) end
      one.standing = 'noted'
    end
  end
end
-- Removes what noteDependent noted. Two of them may have the same last attempt, and so one set: one command removes
-- both, since it may empty the set.
local function forgetDependent(stands, dependent)
  local notes, sets = {}, {}
  for _, one in ipairs(stands) do
    local dependents = one.standing == 'noted' and dependentsOf(one.key, one.member)
    if dependents and not notes[dependents] then
      sets[#sets + 1] = dependents
      notes[dependents] = {}
    end
    local own = dependents and notes[dependents]
    if own then own[#own + 1] = dependent .. '/' .. one.named end
  end
  for _, dependents in ipairs(sets) do redis.call('SREM', dependents, unpack(notes[dependents])) end
end
