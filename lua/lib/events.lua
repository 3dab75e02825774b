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
-- Comes before the first write, as openTask does. `extra` is the handoff's field x.
--@if oneredis
local function openCalls() end
--@else
local function openCalls(key, member, extra)
  if not extra then return end
  if string.find(extra, ' M', 1, true) then return openTask(key, key, member, extra) end
  if string.find(extra, ' C', 1, true) then redis.call('EXISTS', key, callKeys(key, member)) end
end
--@end
-- Its id is a digest of the handoff and a number that counts the handoff's callbacks, so each has another. `of` is a
-- key of the partition.
local function noteCallback(of, micros, type, member, created, extra, text, result)
  local letter, wanted, results = string.match(TOLD, ' ' .. type .. '/(%l)'), string.match(extra, ' C(%l+)(1?)')
  if not letter or not string.find(wanted, letter, 1, true) then return end
  local key, time = string.match(of, '^[^}]*}:') .. 'h:' .. member, ms(math.floor(micros / 1000))
  local target, counts, fault = unpack(redis.call('HMGET', key, 'o', 'O', 'e'))
  if not target then return end
  local pending, others, number = string.match(counts or '0 0 0 - - - 0', '^(%d+) (.*) (%d+)$')
  local id = 'cb_' .. redis.sha1hex(member .. ' ' .. created .. ' ' .. number)
  if type == 'failed' then result = fault end
  keepCall(of, member, id, time, { 'o', target, 'e', text, 'c', created },
    results == '1' and (type == 'done' or type == 'failed') and result)
  redis.call('HSET', key, 'O', ms(pending + 1) .. ' ' .. others .. ' ' .. ms(number + 1))
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
    noteTask(outbox, micros, type, member, record, extra, result == false and not begins, result)
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
