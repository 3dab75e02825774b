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
    if ends then isHere(key, dependentsOf(key, tenant .. id)) end
  end
  return stands
end
-- Notes at the open ones that this one comes after them. Returns how each stands, and its last attempt.
local function noteDependent(stands, dependent)
  local reply = {}
  for _, one in ipairs(stands) do
    if one.ends then
      local dependents = dependentsOf(one.key, one.member)
      -- Two of them may have the same last attempt: then the second finds what was written for the first.
      local record, extra = unpack(redis.call('HMGET', one.key, 's', 'x'))
      if not hasDependents(extra) then
        redis.call('HSET', one.key, 's', (string.gsub(record, '^%l', '2:%0')), 'x', (extra or '') .. ' W1')
      end
      redis.call('SADD', dependents, dependent .. '/' .. one.named)
      keepDependents(dependents, one.ends)
    end
    reply[#reply + 1], reply[#reply + 2] = one.standing, one.id
  end
  return reply
end
