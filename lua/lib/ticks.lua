-- Which ticks of a schedule ran, in the partition of its handoffs. prefix:{tag}:tick:tenant:name is a string: the
-- making of the schedule (microseconds), up to which tick (ms) its ticker has come, and the tick's round unless that
-- is 0; and, if there is one, b and the latest round of what was to be made up for and was settled here.
-- prefix:{tag}:ticked:tenant:name is a sorted set of the ticks that ran last, making/tick, by when (ms). Both
-- outlive the longest catch_up by a day.
-- A tick makes one handoff at most: the mark moves in the script that makes it, and only ever forwards. So it makes no
-- difference how many replicas ask, what their clocks say, and when one that stood still goes on. A tick that begins
-- anew, in another partition or back in this one, has a higher round: so it may run where it was settled that it never
-- would, and what was begun in an earlier round still can't. Each time that a backfill begins ticks is a round too
-- (schedule-run.lua).
local TICKS_KEPT, KEPT_FOR = 128, 2764800000
-- `kind` is t for a tick in its turn, b for one that is made up for, and r for a run with an Idempotency-Key, which has
-- a number in the place of a tick. Of these only those are kept that never will be: the others' handoffs show it.
-- `anchor` is a key that is asked for together with both, since either may be on the other node while a slot moves
-- (isHere in lib/inbox.lua).
local function readMark(mark)
  local text = redis.call('GET', mark) or ''
  local made, upto, round = string.match(text, '^(%d+) (%d+) ?(%d*)')
  return made, tonumber(upto), tonumber(round) or 0, tonumber(string.match(text, ' b(%d+)$')) or 0
end
local function hasTicked(anchor, mark, ticked, kind, making, tick, round)
  redis.call('EXISTS', anchor, mark, ticked)
  local made, upto, last_round, settled = readMark(mark)
  if made and tonumber(made) > tonumber(making) then return true end
  if kind == 't' and made == making then
    local ahead = upto - tick
    if ahead > 0 or (ahead == 0 and last_round >= tonumber(round)) then return true end
  end
  if kind == 'b' and made == making and tonumber(round) <= settled then return true end
  return redis.call('ZSCORE', ticked, making .. '/' .. tick) and true
end
-- `tick` and `round` are after those of the mark, if that is of the same making, and so is `settled`, a round of what
-- was to be made up for. Each may be nil, to leave it.
local function moveMark(mark, making, tick, round, settled, now)
  local made, last_tick, last_round, last_settled = readMark(mark)
  if made ~= making then last_tick, last_round, last_settled = 0, 0, 0 end
  tick, round, settled = tonumber(tick) or last_tick, tonumber(round) or last_round, tonumber(settled) or last_settled
  redis.call('SET', mark, making .. ' ' .. ms(tick) .. (round == 0 and '' or ' ' .. ms(round)) ..
    (settled == 0 and '' or ' b' .. ms(settled)))
  redis.call('PEXPIREAT', mark, ms(now + KEPT_FOR))
end
local function addTicked(ticked, making, tick, now)
  redis.call('ZADD', ticked, ms(now), making .. '/' .. tick)
  local more = redis.call('ZCARD', ticked) - TICKS_KEPT
  if more > 0 then redis.call('ZREMRANGEBYRANK', ticked, 0, more - 1) end
  redis.call('PEXPIREAT', ticked, ms(now + KEPT_FOR))
end
local function noteTicked(mark, ticked, kind, making, tick, round, now)
  if kind == 'r' then return end
  if kind == 't' then
    moveMark(mark, making, tick, round, nil, now)
  elseif readMark(mark) ~= making then
    moveMark(mark, making, nil, nil, nil, now)
  else
    redis.call('PEXPIREAT', mark, ms(now + KEPT_FOR))
  end
  addTicked(ticked, making, tick, now)
end
-- The mark and the ticks of the schedule that a handoff is a run of.
local function ticksBeside(key, options)
  local partition, tenant = string.match(key, '^([^}]*}:)h:([^:]+:)')
  local owner = tenant .. string.match(options, ' S(%S+)')
  return partition .. 'tick:' .. owner, partition .. 'ticked:' .. owner
end
