#!lua flags=allow-oom
-- Moves what the tenants' due indexes of a partition have (lib/due.lua) to the one index that version 0.2.0 knows, a
-- part in each call, so that replicas of that version sweep and list it. Then moves what has a group to the lists that
-- version 0.2.0 catches from (lib/groups.lua).
-- KEYS: 1 prefix:{tag}:tenants   tenants with live handoffs, by when the sweep is to look at them
-- ARGV: 1 the call's deadline (ms)  2 prefix:{tag}:
-- Replies: {'moved', count, more}   so many more handoffs are in that index now; more: 1 if there is more to do, else 0
--@include late groups
local call, tenants, old = redis.call, KEYS[1], ARGV[2] .. 'due'
local tenant, moved, more = call('ZRANGE', tenants, 0, 0)[1], 0, 1

if tenant then
  local due = ARGV[2] .. 'due:' .. tenant
  -- While the slot moves, either index may be on the other node: then Redis refuses this.
  call('EXISTS', tenants, due, old)
  local found, entries = call('ZRANGE', due, 0, 199, 'WITHSCORES'), {}
  for i = 1, #found, 2 do
    if found[i] ~= '-' then entries[#entries + 1], entries[#entries + 2] = found[i + 1], found[i] end
  end
  moved = #entries / 2
  if moved > 0 then
    call('ZADD', old, 'LT', unpack(entries))
    call('ZREMRANGEBYRANK', due, 0, moved - 1)
  end
  if #found < 400 then
    call('ZREM', due, '-')
    call('ZREM', tenants, tenant)
  end
else
  more = leaveGroups(ARGV[2])
end
return { 'moved', moved, more }
