-- A tenant's due index, prefix:{tag}:due:tenant: its live handoffs of one partition, by when the sweep is to look at
-- them (ms). So what a tenant lists or has due costs nobody else anything. Beside it, prefix:{tag}:tenants has each
-- tenant with such an index, by when the sweep is to look at that one: at the first of its members' times, and within
-- LOOK of the last look anyway (sweep.lua). So most passes and catches needn't write there. The index has one member
-- that is no handoff, -, so that it exists until the sweep finds nothing else in it, and takes both away.
-- Has the sweep look at a tenant's index by this time. While the slot moves, the tenants may be on the other node, and
-- a second list of them would be made here: then the sweep finds the time once the slot has moved (sweep.lua).
local function lookBy(key, due, time, now)
  local prefix, tenant = string.match(due, '^([^}]*}:)due:(.*)$')
  if type(redis.pcall('EXISTS', key, prefix .. 'tenants')) == 'number' then
    redis.call('ZADD', prefix .. 'tenants', 'LT', ms(math.min(time, now + LOOK)), tenant)
  end
end
-- A live handoff enters the index, or its place moves. A pass does the same with less to ask (pass.lua).
local function setDue(key, due, time, member, now)
  time = tonumber(time)
  local isMoved = redis.call('ZADD', due, 'XX', 'CH', ms(time), member) == 1
  if isMoved and time >= now + LOOK then return end
  if not isMoved then redis.call('ZADD', due, ms(time), member, 'inf', '-') end
  lookBy(key, due, time, now)
end
