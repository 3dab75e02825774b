-- A handoff that ended leaves the due index. One Redis has all that comes after it, so the first 100 of those are
-- released in the same step, and what is cancelled by that counts with its own dependents. Whoever has dependents left
-- stays in the index, due now: the sweep goes on with them (store/dependents.ts). So does what waited for others, until
-- its notes there are removed. A long chain is no deep recursion. Returns the ids of those that stay.
local function leaveDue(key, due, member, extra, status, now, micros)
  local prefix, tenant = string.match(key, '^[^{]*{'), string.match(member, '^[^:]+:')
  local queue, left, at = { { key = key, due = due, member = member, extra = extra, status = status } }, 100, 1
  local rest = {}
  while queue[at] do
    local one = queue[at]
    local dependents, id = dependentsOf(one.key, one.member), string.sub(one.member, #tenant + 1)
    local has = hasDependents(one.extra)
    local found = has and redis.call('SRANDMEMBER', dependents, left) or {}
    if #found > 0 then redis.call('SREM', dependents, unpack(found)) end
    left = left - #found
    for _, dependent in ipairs(found) do
      local next_id, named = string.match(dependent, '^([^/]+)/(.+)$')
      local partition = prefix .. string.sub(next_id, 1, 3) .. '}:'
      local next = { key = partition .. 'h:' .. tenant .. next_id }
      next.due = partition .. 'due:' .. string.sub(tenant, 1, -2)
      next.member = tenant .. next_id
      local became
      became, next.extra = release(next.key, next.due, next.member, named, id, one.status, now, micros)
      if became == 'cancelled' then
        next.status = 'cancelled'
        queue[#queue + 1] = next
      end
    end
    if has and redis.call('SCARD', dependents) > 0 or leftOpen(one.extra, one.status) > 0 then
      setDue(one.key, one.due, now, one.member, now)
      rest[#rest + 1] = id
    else
      redis.call('ZREM', one.due, one.member)
    end
    at = at + 1
  end
  return rest
end
