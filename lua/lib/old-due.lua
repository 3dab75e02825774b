-- Version 0.2.0 has one due index for all tenants, prefix:{tag}:due. Moves a part of it to the tenants' own
-- (lib/due.lua), and returns whether there may be more. The version after this one may leave this out.
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
  -- What a replica of this version moved meanwhile keeps the earlier time.
  for _, tenant in ipairs(names) do
    redis.call('ZADD', prefix .. 'due:' .. tenant, 'LT', unpack(all[tenant]))
    redis.call('ZADD', tenants, 'LT', ms(now), tenant)
  end
  redis.call('ZREMRANGEBYRANK', old, 0, #found / 2 - 1)
  return #found == 400
end
