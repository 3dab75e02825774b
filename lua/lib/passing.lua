-- What a pass's last argument has: the payload, and behind it, as long as the words of pass say, the schema, fields b
-- and o, and the beginning and the title of the task if they are sealed. Else those are the task's own: it is a JSON
-- string, and begins with the payload's eighth byte.
local function partsOf(options, payload)
  local find, match, sub = string.find, string.match, string.sub
  local isSealed = find(options, ' E', 1, true)
  local beginning, title = find(options, ' l', 1, true) and match(options, ' l(%d+)'), match(options, ' n(%d+)')
  local parts = {}
  if isSealed and title then parts.title, payload = sub(payload, -title), sub(payload, 1, -title - 1) end
  if isSealed and beginning then
    parts.beginning, payload = sub(payload, -beginning), sub(payload, 1, -beginning - 1)
  end
  -- To search for a text takes much less than for a pattern, and most passes have none of these.
  local target = find(options, ' C', 1, true) and match(options, ' C%l+1?/(%d+)')
  if target then parts.target, payload = sub(payload, -target), sub(payload, 1, -target - 1) end
  local after = find(options, ' A', 1, true) and match(options, ' A%l/%d+/%d+/(%d+)')
  if after then parts.after, payload = sub(payload, -after), sub(payload, 1, -after - 1) end
  local schema = find(options, ' z', 1, true) and match(options, ' z(%d+)')
  if schema then parts.schema, payload = sub(payload, -schema), sub(payload, 1, -schema - 1) end
  if beginning and not isSealed then parts.beginning = string.sub(payload, 8, 7 + beginning) .. '"' end
  if title and not isSealed then parts.title = string.sub(payload, 8, 7 + title) end
  parts.payload = payload
  return parts
end
-- The fields of a handoff's hash that pass.lua writes, for HSET: the record and the payload, then those that the pass
-- has. Field x is empty for none.
local function fieldsOf(record, extra, parts)
  local fields = { 's', record, 'p', parts.payload }
  if extra ~= '' then fields[5], fields[6] = 'x', extra end
  if parts.title then fields[#fields + 1], fields[#fields + 2] = 'n', parts.title end
  if parts.schema then fields[#fields + 1], fields[#fields + 2] = 'r', parts.schema end
  if parts.after then fields[#fields + 1], fields[#fields + 2] = 'b', parts.after end
  if parts.target then fields[#fields + 1], fields[#fields + 2] = 'o', parts.target end
  return fields
end
