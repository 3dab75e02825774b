-- Events (docs/events.md): each transition writes its own, in the same script. lib/direct.lua and lib/relayed.lua say
-- where to.
-- An event's text: type, status, id, passed_by, caught_by (- for none), then what only some have, a space, a letter and
-- its value (lib/record.lua). `record` and `extra` are the handoff's fields s and x as they are now. A script that
-- knows who caught it says so, since reading the whole record takes twice as long. `more` are further words. Also
-- returns when the handoff was passed.
local function eventOf(type, id, record, extra, caught_by, more)
  local status, created, passed_by, deadline, catcher
  if caught_by then
    status, created, passed_by = string.match(record, '^[23]?:?(%l+) %l+ (%d+) %d+ (%S+)')
  else
    status, created, passed_by, deadline, catcher =
      string.match(record, '^[23]?:?(%l+) %l+ (%d+) %d+ (%S+) %S+ ?%d* ?(%d*) ?(%S*)')
    caught_by = catcher == '' and '-' or catcher
  end
  local text = type .. ' ' .. status .. ' ' .. id .. ' ' .. passed_by .. ' ' .. caught_by
  if extra then
    for word in string.gmatch(extra, ' [tpnoj]%S+') do text = text .. word end
  end
  if status == 'expired' then
    local beat = extra and string.match(extra, ' h(%d+)')
    text = text .. ' b' .. (deadline == '' and 'not_caught' or
      beat and tonumber(beat) < tonumber(deadline) and 'stalled' or 'not_done')
  end
  return more and text .. more or text, created
end
