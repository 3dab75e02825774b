-- Events (docs/events.md): each transition writes its own, in the same script. lib/appending.lua says where to, and has
-- `appendPlain`, which takes an event's words. This makes them of the handoff's fields. A handoff that was passed with
-- a callback notes its own, and one that came by A2A what its task makes of it, whether events are on or not.
--@include tasks
--@if events
--@else
-- As in lib/appending.lua, where there are events.
local function openOutbox(_, key) return key end
--@end
-- What a callback can tell, by its letter in word C of field x: its types, and behind them 1 if it has results.
local TOLD = ' caught/c done/d failed/f declined/l cancelled/x expired/e rejected/j asked/a reissued/r'
-- A callback has at most so many bytes of a result or an error, and is kept for 40 days if nobody delivers it.
local CALL_BYTES = 262144
local CALL_KEPT = 3456000000
-- Notes a callback that is to be delivered (webhooks/callbacks.ts). It lives on by itself, without its handoff:
--   prefix:{tag}:calls          the tenants that have some here, by when the first is due (ms)
--   prefix:{tag}:calls:tenant   a tenant's, by when each is due (ms)
--   prefix:{tag}:call:tenant:id one, a hash: o as the handoff's; e the event's text; c when the handoff was passed; t
--                               when this was (ms); n how often it was tried, the last status, error and time, - for
--                               none; r the result or the error, JSON; R 1 if that is too long
-- Comes before the first write: while the slot moves, these keys may be on the other node (isHere in lib/inbox.lua),
-- and none can be made here. Nothing ever has the last one, so then Redis always refuses the command. `extra` is the
-- handoff's field x.
--@if oneredis
local function openCalls() end
--@else
local function openCalls(key, member, extra)
  if extra and string.find(extra, ' M', 1, true) then openTask(key, key, member, extra) end
  if not extra or not string.find(extra, ' C', 1, true) then return end
  local partition, tenant = string.match(key, '^[^}]*}:'), string.match(member, '^[^:]+')
  redis.call('EXISTS', key, partition .. 'calls', partition .. 'calls:' .. tenant,
    partition .. 'call:' .. tenant .. ':')
end
--@end
-- Its id is a digest of the handoff and a number that counts the handoff's callbacks, so each has another. `of` is a
-- key of the partition.
local function noteCallback(of, micros, type, member, created, extra, text, result)
  local letter, wanted, results = string.match(TOLD, ' ' .. type .. '/(%l)'), string.match(extra, ' C(%l+)(1?)')
  if not letter or not string.find(wanted, letter, 1, true) then return end
  local partition, tenant = string.match(of, '^[^}]*}:'), string.match(member, '^[^:]+')
  local key, calls, time = partition .. 'h:' .. member, partition .. 'calls', ms(math.floor(micros / 1000))
  local target, counts, fault = unpack(redis.call('HMGET', key, 'o', 'O', 'e'))
  if not target then return end
  local pending, others, number = string.match(counts or '0 0 0 - - - 0', '^(%d+) (.*) (%d+)$')
  local id = 'cb_' .. redis.sha1hex(member .. ' ' .. created .. ' ' .. number)
  local fields = { 'o', target, 'e', text, 'c', created, 't', time, 'n', '0 - - -' }
  if type == 'failed' then result = fault end
  if results == '1' and result and (type == 'done' or type == 'failed') then
    fields[11], fields[12] = #result > CALL_BYTES and 'R' or 'r', #result > CALL_BYTES and '1' or result
  end
  local call = partition .. 'call:' .. tenant .. ':' .. id
  redis.call('HSET', call, unpack(fields))
  redis.call('PEXPIREAT', call, ms(time + CALL_KEPT))
  redis.call('ZADD', calls .. ':' .. tenant, time, id)
  redis.call('ZADD', calls, 'LT', time, tenant)
  redis.call('HSET', key, 'O', ms(pending + 1) .. ' ' .. others .. ' ' .. ms(number + 1))
  --@if oneredis
  -- Where one Redis has all partitions, whoever delivers hears of it at once. In a Cluster it looks every 2 s.
  redis.pcall('SPUBLISH', string.match(of, '^[^{]*') .. 'calls', string.match(of, '{(.-)}') .. ' ' .. tenant)
  --@end
end
-- An event's text: type, status, id, passed_by, caught_by (- for none), then what only some have, a space, a letter and
-- its value (lib/record.lua). `record` and `extra` are the handoff's fields s and x as they are now. A script that
-- knows who caught it says so, since reading the whole record takes twice as long. `more` are further words. `outbox`
-- is what openOutbox gave, before the script's first write; openCalls comes before that too. `result` is what done was
-- given; false where no callback tells this, since a successor of the same step does. `begins`: that successor begins
-- another A2A task.
local function append(outbox, micros, type, member, record, extra, caught_by, more, result, begins)
  local is_told = result ~= false and extra and string.find(extra, ' C', 1, true)
  if extra and string.find(extra, ' M', 1, true) then
    noteTask(outbox, micros, type, member, record, extra, result == false and not begins)
  end
  --@if events
  --@else
  if not is_told then return end
  --@end
  local status, created, passed_by, catcher
  if caught_by then
    status, created, passed_by = string.match(record, '^[23]?:?(%l+) %l+ (%d+) %d+ (%S+)')
  else
    status, created, passed_by, catcher =
      string.match(record, '^[23]?:?(%l+) %l+ (%d+) %d+ (%S+) %S+ ?%d* ?%d* ?(%S*)')
    caught_by = catcher == '' and '-' or catcher
  end
  local rest = caught_by
  if extra then
    for word in string.gmatch(extra, ' [tpnojST]%S+') do rest = rest .. word end
  end
  if status == 'expired' then rest = rest .. ' b' .. select(2, expiryIn(record, extra)) end
  if more then rest = rest .. more end
  --@if events
  appendPlain(nil, outbox, member, 1, micros, type .. ' ' .. status .. ' ', passed_by, rest,
    type ~= 'passed' and created)
  --@end
  if is_told then
    local id = string.match(member, ':(.*)$')
    noteCallback(outbox, micros, type, member, created, extra,
      type .. ' ' .. status .. ' ' .. id .. ' ' .. passed_by .. ' ' .. rest, result)
  end
end
