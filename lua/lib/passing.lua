-- The fields of a handoff's hash that pass.lua writes, for HSET: the record and the payload, then those that the pass
-- has. `title` is how many bytes of the task the title keeps; field x is empty for none.
local function fieldsOf(record, payload, extra, title, schema, after, target)
  local fields = { 's', record, 'p', payload }
  if extra ~= '' then fields[5], fields[6] = 'x', extra end
  if title then fields[#fields + 1], fields[#fields + 2] = 'n', string.sub(payload, 8, 7 + title) end
  if schema then fields[#fields + 1], fields[#fields + 2] = 'r', schema end
  if after then fields[#fields + 1], fields[#fields + 2] = 'b', after end
  if target then fields[#fields + 1], fields[#fields + 2] = 'o', target end
  return fields
end
