-- A tenant's due index, prefix:{tag}:due:tenant: its live handoffs of one partition, by when the sweep is to look at
-- them (ms). So a tenant's lists and deadlines cost no other tenant anything. prefix:{tag}:tenants has each tenant with
-- an index, by when the sweep is to look at the index: at the first of its members' times, and anyway within LOOK of
-- the last look. So most passes and catches needn't write there. One member of the index, -, is no handoff: it keeps
-- the index until the sweep finds nothing else in it, and removes both.
-- Has the sweep look at a tenant's index by this time. While the slot moves, the list of tenants may be on the other
-- node, and a second list would be made here: then the sweep finds the time once the slot has moved (sweep.lua).
local function lookBy(key, due, time, now)
  local prefix, tenant = string.match(due, '^([^}]*}:)due:(.*)$')
  if type(redis.pcall('EXISTS', key, prefix .. 'tenants')) == 'number' then
    redis.call('ZADD', prefix .. 'tenants', 'LT', ms(math.min(time, now + LOOK)), tenant)
  end
end
-- A live handoff enters the index, or its time changes. pass.lua does the same with fewer checks.
local function setDue(key, due, time, member, now)
  time = tonumber(time)
  local isMoved = redis.call('ZADD', due, 'XX', 'CH', ms(time), member) == 1
  if isMoved and time >= now + LOOK then return end
  if not isMoved then redis.call('ZADD', due, ms(time), member, 'inf', '-') end
  lookBy(key, due, time, now)
end
-- Version 0.2.0 has one due index for all tenants, prefix:{tag}:due. Moves a part of it to the tenants' own, and
-- returns whether there may be more. The version after this one may leave this out.
local function moveOldDue(prefix, tenants, now)
  local old, all, names = prefix .. 'due', {}, {}
  local found = redis.call('ZRANGE', old, 0, 199, 'WITHSCORES')
  -- Before anything is written: what isn't here may be on the other node, and Redis refuses to look for two keys then.
  redis.call('EXISTS', old, tenants)
  for i = 1, #found, 2 do
    local tenant = string.match(found[i], '^[^:]+')
    if not all[tenant] then
      redis.call('EXISTS', old, prefix .. 'due:' .. tenant)
      all[tenant], names[#names + 1] = { 'inf', '-' }, tenant
    end
    local entries = all[tenant]
    entries[#entries + 1], entries[#entries + 2] = found[i + 1], found[i]
  end
  -- If a replica of this version moved the handoff meanwhile, the earlier time stays.
  for _, tenant in ipairs(names) do
    redis.call('ZADD', prefix .. 'due:' .. tenant, 'LT', unpack(all[tenant]))
    redis.call('ZADD', tenants, 'LT', ms(now), tenant)
  end
  redis.call('ZREMRANGEBYRANK', old, 0, #found / 2 - 1)
  return #found == 400
end
local function indexAll(now)
  for _, key in ipairs(KEYS) do
    local record, extra = unpack(redis.call('HMGET', key, 's', 'x'))
    local status = string.match(record or '', RECORD)
    if status then
      local member = string.match(key, MEMBER)
      local due = string.sub(key, 1, #key - #member - 2) .. 'due:' .. string.match(member, '^[^:]+')
      isHere(key, due)
      local isThere = redis.call('ZSCORE', due, member)
      if status == 'pending' or status == 'caught' then
        -- The sweep looks at it at once, and then when it is due.
        if isThere then lookBy(key, due, now + LOOK, now) else setDue(key, due, now, member, now) end
      elseif isThere and (hasDependents(extra) or leftOpen(extra, status) > 0) then
        -- The sweep releases its dependents, or removes its notes, and then takes it out.
        setDue(key, due, now, member, now)
      elseif isThere then
        redis.call('ZREM', due, member)
      end
    end
  end
end
