-- The most bytes that a handoff takes in a catch's answer: its payload, its result schema, the decision, and 700 for
-- all the rest.
local function lengthOf(payload, schema, decision)
  return payload + schema + decision + 700
end
-- Would this make the answer too long? One handoff always fits.
local function isTooLong(size, length)
  return size > 0 and size + length > 4194304
end
