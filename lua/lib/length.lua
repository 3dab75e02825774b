-- How much of a catch's answer a handoff takes at the most, in bytes: its payload, its result schema, the decision, and what is told of it
-- besides.
local function lengthOf(payload, schema, decision)
  return payload + schema + decision + 700
end
-- Would an answer become too long by it? One always fits.
local function isTooLong(size, length)
  return size > 0 and size + length > 4194304
end
