-- A run is what a tenant passed with the same value of a label that RUN_LABELS names: word J of field x. Its keys end
-- with tenant:name:value. On one Redis they are in no partition; in a Cluster each partition has its own, and the
-- replica that sweeps brings the counts to the tenant's home (store/runs.ts). What an agent passed whose live handoffs
-- are limited is a run too: its name is *, which no label has, and its value the agent. It has the first key alone.
--   run:    sorted set, what is live of it, by when the sweep was to look at it first (ms)
--   ran:    sorted set, its attempts that have ended, by when that was written (ms)
--   lost:   sorted set, those of them that have failed and weren't reissued
--   total:  hash, how many works are live, done, failed, or ended otherwise (other), and when the first and the last
--           were passed; in a Cluster that is the sum, at home, and each partition's are in count:, with when they
--           changed (at)
--   runs:   ends with tenant:name; sorted set, the values, by when each was passed last (ms). At home
--   runs    in a Cluster: sorted set, the runs whose counts changed here, by when (microseconds)
-- Where the runs' keys are, by a handoff's key, and what the counts' keys are called there.
--@if oneredis
local PLACE = '^[^{]*'
local COUNTS = 'total:'
--@else
local PLACE = '^[^}]*}:'
local COUNTS = 'count:'
--@end
-- What a run's keys are kept for longer than they have to be, in milliseconds, so that most changes needn't see to it.
local DAY = 86400000
local function keepUntil(key, time)
  if redis.call('PEXPIRETIME', key) < time then redis.call('PEXPIREAT', key, ms(time + DAY)) end
end
-- Has a run more than what is live of it?
local function isCounted(run)
  return not string.find(run, '^[^:]+:%*:')
end
-- Field x with the run of what its passer passed, whose live handoffs are limited.
local function withAgentsRun(extra, passed_by)
  local word = ' J*:' .. passed_by
  return string.find((extra or '') .. ' ', word .. ' ', 1, true) and extra or (extra or '') .. word
end
-- The runs that a handoff belongs to, by field x; nil if to none. Call it before the first write (isHere).
local function openRuns(key, member, extra)
  if not extra or not string.find(extra, ' J', 1, true) then return nil end
  local place, tenant, runs = string.match(key, PLACE), string.match(member, '^[^:]+:'), {}
  for word in string.gmatch(extra, ' J(%S+)') do
    local run = tenant .. word
    runs[#runs + 1] = run
    --@if oneredis
    --@else
    redis.call('EXISTS', key, place .. 'count:' .. run, place .. 'run:' .. run, place .. 'ran:' .. run,
      place .. 'lost:' .. run, place .. 'runs')
    --@end
  end
  runs.place = place
  return runs
end
-- In a Cluster the replica that sweeps learns so that a run's counts have changed. Each change has a later moment than
-- the one before, also when the clock is set back.
local function noteRun(place, run, micros)
  --@if oneredis
  --@else
  local counts = place .. 'count:' .. run
  local before = redis.call('HGET', counts, 'at')
  if before and before + 0 >= micros + 0 then micros = ms(before + 1) end
  redis.call('HSET', counts, 'at', micros)
  redis.call('ZADD', place .. 'runs', micros, run)
  --@end
end
-- A run's value was passed. The 10,000 that were passed last are kept, and one that is gone leaves some time later.
local function nameRun(place, run, now, micros)
  local values, value = string.match(run, '^([^:]+:[^:]+):(.*)$')
  values = place .. 'runs:' .. values
  redis.call('ZADD', values, 'GT', ms(now), value)
  keepUntil(values, now + RETENTION + 40 * DAY)
  if micros % 32 ~= 0 then return end
  local over = redis.call('ZCARD', values) - 10000
  if over > 0 then redis.call('ZREMRANGEBYRANK', values, 0, over - 1) end
  for _, old in ipairs(redis.call('ZRANGE', values, 0, 9)) do
    local total = place .. 'total:' .. string.match(run, '^[^:]+:[^:]+:') .. old
    if old ~= value and redis.call('EXISTS', values, total) == 1 then redis.call('ZREM', values, old) end
  end
end
-- A handoff was passed. The sweep is to look at it at `due`, and it can be caught until `ends` (ms).
local function beginRuns(runs, member, due, ends, now, micros)
  local place = runs.place
  for _, run in ipairs(runs) do
    local counts, list = place .. COUNTS .. run, place .. 'run:' .. run
    redis.call('ZADD', list, due, member)
    keepUntil(list, ends + RETENTION + 40 * DAY)
    if isCounted(run) then
      local live, first, last = unpack(redis.call('HMGET', counts, 'live', 'first', 'last'))
      redis.call('HSET', counts, 'live', (live or 0) + 1, 'first', ms(math.min(first or now, now)),
        'last', ms(math.max(last or now, now)))
      keepUntil(counts, ends + RETENTION + 40 * DAY)
      noteRun(place, run, micros)
      --@if oneredis
      nameRun(place, run, now, micros)
      --@end
    end
  end
end
-- A work leaves one of a run's counts for another. Returns what is left of the one.
local function moveCount(counts, from, to)
  local one, other = unpack(redis.call('HMGET', counts, from, to))
  redis.call('HSET', counts, from, (one or 0) - 1, to, (other or 0) + 1)
  return (one or 0) - 1
end
local function endCounted(place, run, member, became, now, micros)
  local counts, over, left = place .. COUNTS .. run, place .. 'ran:' .. run, 1
  enterOver(over, member, ms(now), now)
  if became == 'failed' then enterOver(place .. 'lost:' .. run, member, ms(now), now) end
  if became then
    left = moveCount(counts, 'live', became)
    noteRun(place, run, micros)
  end
  if left <= 0 then
    redis.call('PEXPIREAT', over, ms(now + RETENTION + 1000))
    redis.call('PEXPIREAT', counts, ms(now + RETENTION + 1000))
  end
end
-- An attempt ended: it became done, failed or other; or nil, and `next` is its successor.
local function endRuns(runs, member, became, next, now, micros)
  local place = runs.place
  for _, run in ipairs(runs) do
    local list = place .. 'run:' .. run
    if next then redis.call('ZADD', list, next.due, next.member) end
    redis.call('ZREM', list, member)
    if isCounted(run) then endCounted(place, run, member, became, now, micros) end
  end
end
-- What had failed was reissued: it is live again.
local function resumeRuns(runs, member, next, now, micros)
  local place = runs.place
  for _, run in ipairs(runs) do
    local counts, list = place .. COUNTS .. run, place .. 'run:' .. run
    redis.call('ZADD', list, next.due, next.member)
    local ends = now + RETENTION + 40 * DAY
    keepUntil(list, ends)
    if isCounted(run) then
      redis.call('ZREM', place .. 'lost:' .. run, member)
      moveCount(counts, 'failed', 'live')
      keepUntil(counts, ends)
      noteRun(place, run, micros)
    end
  end
end
