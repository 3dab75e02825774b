-- What is delivered to addresses that clients chose (webhooks/callbacks.ts): callbacks (lib/events.lua), and what A2A's
-- push configs are sent (lib/tasks.lua). Transitions note each one, and it lives on by itself, without its handoff:
--   prefix:{tag}:calls          the tenants that have some here, by when the first is due (ms)
--   prefix:{tag}:calls:tenant   a tenant's, by when each is due (ms)
--   prefix:{tag}:call:tenant:id one, a hash: o the target, as the handoff or the push config has it; e the event's
--                               text, or `a2a`, the config's number, the task's id, who passed it, its context and the
--                               change; c when the handoff was passed, - for a push config; t when this was (ms); n how
--                               often it was tried, the last status, error and time, - for none; r the result or the
--                               error, JSON; R 1 if that is too long; x the id of the work's first attempt
-- Each has at most so many bytes of a result or an error, and is kept for 40 days if no replica delivers it.
local CALL_BYTES = 262144
local CALL_KEPT = 3456000000
-- While the slot moves, these keys may be on the other node (isHere in lib/inbox.lua), and none can be made here.
-- Nothing ever has the last one, so then Redis always refuses a command that names it. `of` is a key of the partition.
local function callKeys(of, member)
  local partition, tenant = string.match(of, '^[^}]*}:'), string.match(member, '^[^:]+')
  return partition .. 'calls', partition .. 'calls:' .. tenant, partition .. 'call:' .. tenant .. ':'
end
-- `time` is when this happened (ms), as text.
local function keepCall(of, member, id, time, fields, result)
  local calls, due, prefix = callKeys(of, member)
  local tenant, call = string.match(member, '^[^:]+'), prefix .. id
  redis.call('HSET', call, 't', time, 'n', '0 - - -', unpack(fields))
  if result and lengthOf(result) > CALL_BYTES then
    redis.call('HSET', call, 'R', '1')
  elseif result then
    redis.call('HSET', call, 'r', result)
  end
  redis.call('PEXPIREAT', call, ms(time + CALL_KEPT))
  redis.call('ZADD', due, time, id)
  redis.call('ZADD', calls, 'LT', time, tenant)
  --@if oneredis
  -- Where one Redis has all partitions, the deliverer hears of it at once. In a Cluster it looks every 2 s.
  redis.pcall('SPUBLISH', string.match(of, '^[^{]*') .. 'calls', string.match(of, '{(.-)}') .. ' ' .. tenant)
  --@end
end
