-- An inbox's list is a sorted set of what can be caught from it now. The score is the turn: when a handoff entered, in
-- microseconds, less a minute for each step of priority. The last digit is that priority, so the list alone tells when
-- something entered; two that enter within the same 10 microseconds have no order. A score is exact below 2^53: until
-- the year 2255.
local MINUTE = 60000000
local function enterInbox(inbox, member, extra, micros)
  local priority = tonumber(string.match(extra, ' u(%d)') or 0)
  redis.call('ZADD', inbox, string.format('%d', micros - micros % 10 + priority - priority * MINUTE), member)
  redis.pcall('SPUBLISH', inbox, 'passed')
end
