-- What has ended and what runs have, of handoffs that were written by versions, or with settings, that didn't know
-- these lists.
-- Field x, empty for none, with the words of the runs that a handoff was passed without. `isLimited`: its passer has a
-- limit, and it counts.
local function withRuns(extra, passed_by, labels, isLimited)
  local words = extra or ''
  for _, name in ipairs(labels) do
    local label = string.match(words .. ' ', ' j(' .. string.gsub(name, '%p', '%%%0') .. ':%S+)')
    if label and not string.find(words .. ' ', ' J' .. label .. ' ', 1, true) then words = words .. ' J' .. label end
  end
  return isLimited and withAgentsRun(words, passed_by) or words
end
-- Sees to the lists of a handoff that was written by a version, or with settings, that didn't know them. Returns its
-- successor's key if that may count for an agent with a limit: it may have been made since its like were looked for.
-- `limited` has the agents with limits, as tenant:agent.
local function indexEnded(key, now, micros, labels, limited)
  local record, extra = unpack(redis.call('HMGET', key, 's', 'x'))
  local status, _, created, expires, passed_by, _, deadline = string.match(record or '', RECORD)
  if not status then return end
  local member, isLive = string.match(key, MEMBER), status == 'pending' or status == 'caught'
  local isLimited = limited[string.match(member, '^[^:]+:') .. passed_by]
  local words = withRuns(extra, passed_by, labels, isLive and isLimited)
  local next = isLimited and string.match(extra or '', ' i(%S+)')
  if next then next = string.match(key, '^.*:') .. next end
  if not string.find(words, ' [tjJ]') then return next end
  local list, runs = openEnded(key, member, words), openRuns(key, member, words)
  local ends = math.max(expires, tonumber(deadline) or 0)
  if isLive and runs then
    if words ~= extra then redis.call('HSET', key, 's', extra and record or '2:' .. record, 'x', words) end
    for _, run in ipairs(runs) do
      if not redis.call('ZSCORE', runs.place .. 'run:' .. run, member) then
        beginRuns({ place = runs.place, run }, member, ms(ends), ends, tonumber(created), micros)
      end
    end
  elseif not isLive then
    local isFailure = status == 'failed' or status == 'declined' or
      status == 'expired' and (deadline ~= '' or string.find(extra, ' t', 1, true))
    local became = status == 'done' and 'done' or isFailure and 'failed' or 'other'
    if string.find(extra, ' i', 1, true) then became = nil end
    -- Of what has a successor, that one is counted.
    local fresh = became and openRuns(key, member, string.sub(words, #extra + 1))
    if fresh then
      redis.call('HSET', key, 'x', words)
      beginRuns(fresh, member, ms(ends), ends, tonumber(created), micros)
    end
    for _, run in ipairs(runs or {}) do
      if redis.call('ZSCORE', runs.place .. 'run:' .. run, member) then
        endRuns({ place = runs.place, run }, member, became, nil, now, micros)
      end
    end
    if list and not redis.call('ZSCORE', list, member) then enterOver(list, member, ms(now), now) end
  end
  return next
end
local function indexAllEnded(now, micros)
  local labels, limited = {}, {}
  for at = 3, #ARGV do
    if string.find(ARGV[at], ':', 1, true) then limited[ARGV[at]] = true else labels[#labels + 1] = ARGV[at] end
  end
  for _, key in ipairs(KEYS) do
    repeat key = indexEnded(key, now, micros, labels, limited) until not key
  end
end
