-- Events (docs/events.md): each transition writes its own, in the same script. lib/appending.lua says where to, and has
-- `appendPlain`, which takes an event's words. This makes them of the handoff's fields. A handoff that was passed with
-- a callback notes its own, and one that came by A2A what its task makes of it, whether events are on or not.
--@include tasks
--@if events
--@else
-- As in lib/appending.lua, where there are events.
local function openOutbox(_, key) return key end
--@end
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
-- An event's text: type, status, id, passed_by, caught_by (- for none), then what only some have, a space, a letter and
-- its value (lib/record.lua). `record` and `extra` are the handoff's fields s and x as they are now. A script that
-- knows who caught it says so, since reading the whole record takes twice as long. `more` are further words. `outbox`
-- is what openOutbox gave, before the script's first write; openCalls comes before that too. `result` is what done was
-- given; false where no callback tells this, since a successor of the same step does. `begins`: that successor begins
-- another A2A task.
local function append(outbox, micros, type, member, record, extra, caught_by, more, result, begins)
  local is_told = result ~= false and extra and string.find(extra, ' C', 1, true)
  if extra and string.find(extra, ' M', 1, true) then
    --@include task-notes
    noteTask(outbox, micros, type, member, record, extra, result == false and not begins, result)
  end
  --@if events
  --@else
  if not is_told then return end
  --@end
  local status, created, passed_by, catcher
  if caught_by then
    status, created, passed_by = string.match(record, '^[2-5]?:?(%l+) %l+ (%d+) %d+ (%S+)')
  else
    status, created, passed_by, catcher =
      string.match(record, '^[2-5]?:?(%l+) %l+ (%d+) %d+ (%S+) %S+ ?%d* ?%d* ?(%S*)')
    caught_by = catcher == '' and '-' or catcher
  end
  local rest = caught_by
  if extra then
    for word in string.gmatch(extra, ' [tpnojGST]%S+') do rest = rest .. word end
  end
  if status == 'expired' then rest = rest .. ' b' .. select(2, expiryIn(record, extra)) end
  if more then rest = rest .. more end
  --@if events
  appendPlain(nil, outbox, member, 1, micros, type .. ' ' .. status .. ' ', passed_by, rest,
    type ~= 'passed' and created)
  --@end
  if is_told then
    --@include callbacks
    local id = string.match(member, ':(.*)$')
    noteCallback(outbox, micros, type, member, created, extra,
      type .. ' ' .. status .. ' ' .. id .. ' ' .. passed_by .. ' ' .. rest, result)
  end
end
