-- Live handoffs, in lists of a tenant's (lib/due.lua), or of those that an agent with a limit passed (lib/runs.lua).
local function countLive()
  local count = 0
  -- The one member without an end is no handoff.
  for _, list in ipairs(KEYS) do count = count + redis.call('ZCOUNT', list, '-inf', '(inf') end
  return count
end
