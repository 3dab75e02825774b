-- Does this replica lack the payload key of this name?
--@constant PAYLOAD_KEYS
local function isMissing(name)
  return not string.find(PAYLOAD_KEYS, ' ' .. name .. ' ', 1, true)
end
