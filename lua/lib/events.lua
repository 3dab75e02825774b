--@if events
-- Events (docs/events.md): each transition writes its event in the same script. `appendPlain` (lib/appending.lua) takes
-- an event's words; `append` makes them from the handoff's fields.
-- An event's text: type, status, id, passed_by, caught_by (- for none), then optional words: a space, a letter and its
-- value (lib/record.lua). `record` and `extra` are the handoff's fields s and x as they are now. A script that knows
-- the catcher passes it on, since reading the whole record takes twice as long. `more` are further words. `outbox` is
-- the result of openOutbox, before the script's first write.
local function append(outbox, micros, type, member, record, extra, caught_by, more)
  local status, approval, created, passed_by, deadline, catcher
  if caught_by then
    status, created, passed_by = string.match(record, '^[23]?:?(%l+) %l+ (%d+) %d+ (%S+)')
  else
    status, approval, created, passed_by, deadline, catcher =
      string.match(record, '^[23]?:?(%l+) (%l+) (%d+) %d+ (%S+) %S+ ?%d* ?(%d*) ?(%S*)')
    caught_by = catcher == '' and '-' or catcher
  end
  local rest = caught_by
  if extra then
    for word in string.gmatch(extra, ' [tpnoj]%S+') do rest = rest .. word end
  end
  if status == 'expired' then
    local beat = extra and string.match(extra, ' h(%d+)')
    rest = rest .. ' b' .. (deadline == '' and (approval == 'waiting' and 'not_decided' or 'not_caught') or
      beat and tonumber(beat) < tonumber(deadline) and 'stalled' or 'not_done')
  end
  if more then rest = rest .. more end
  appendPlain(nil, outbox, member, 1, micros, type .. ' ' .. status .. ' ', passed_by, rest,
    type ~= 'passed' and created)
end
--@else
local function openOutbox() end
local function append() end
--@end
