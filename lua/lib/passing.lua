-- What a pass's last argument has: the payload, and behind it, as long as the words of pass say, the schema, fields b
-- and o, and the beginning and the title of the task if they are sealed. Else those are the task's own: it is a JSON
-- string, and begins with the payload's eighth byte.
local function partsOf(options, payload)
  local isSealed = string.find(options, ' E', 1, true)
  local beginning, title = string.match(options, ' l(%d+)'), string.match(options, ' n(%d+)')
  local parts, sizes = {}, {
    isSealed and title, isSealed and beginning, string.match(options, ' C%l+1?/(%d+)') or false,
    string.match(options, ' A%l/%d+/%d+/(%d+)') or false, string.match(options, ' z(%d+)') or false
  }
  for at, name in ipairs({ 'title', 'beginning', 'target', 'after', 'schema' }) do
    local size = sizes[at]
    if size then
      parts[name], payload = string.sub(payload, -size), string.sub(payload, 1, -size - 1)
    end
  end
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
