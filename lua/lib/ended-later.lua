-- A handoff that ended leaves the due index. If others come after it, it stays there until they are released: they are
-- in other partitions, so the replica that sweeps does that (store/dependents.ts), as soon as it looks. It also
-- stays if it waited for others, until its notes there are removed. Returns its id if it stays, in a table.
local function leaveDue(key, due, member, extra, status, now)
  if hasDependents(extra) or leftOpen(extra, status) > 0 then
    setDue(key, due, now, member, now)
    return { string.match(member, ':(.*)$') }
  end
  redis.call('ZREM', due, member)
  return {}
end
