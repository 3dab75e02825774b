-- A handoff that ended leaves the due index. If others come after it, it stays there until they are released: they are
-- in other partitions, so the replica that sweeps does that (store/dependents.ts), as soon as it looks. Returns its id
-- if so, in a table.
local function leaveDue(key, due, member, extra, _, now)
  if hasDependents(extra) then
    redis.call('ZADD', due, ms(now), member)
    return { string.match(member, ':(.*)$') }
  end
  redis.call('ZREM', due, member)
  return {}
end
