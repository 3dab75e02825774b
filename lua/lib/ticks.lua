-- Which ticks of a schedule ran, in the partition of its handoffs. prefix:{tag}:tick:tenant:name is a string: the
-- making of the schedule (microseconds), up to which tick (ms) its ticker has come, and the tick's round unless that
-- is 0. prefix:{tag}:ticked:tenant:name is a sorted set of the ticks that ran last, making/tick, by when (ms). Both
-- outlive the longest catch_up by a day.
-- A tick makes one handoff at most: the mark moves in the script that makes it, and only ever forwards. So it makes no
-- difference how many replicas ask, what their clocks say, and when one that stood still goes on. A tick that begins
-- anew, in another partition or back in this one, has a higher round: so it may run where it was settled that it never
-- would, and what was begun in an earlier round still can't. The round of a tick that is made up for is when that was
-- begun (ms); of those that were settled in this partition the sorted set has making/tick/b too, by the round.
local TICKS_KEPT, KEPT_FOR = 128, 2764800000
-- `kind` is t for a tick in its turn, b for one that is made up for, and r for a run with an Idempotency-Key, which has
-- a number in the place of a tick. Of these only those are kept that never will be: the others' handoffs show it.
-- `anchor` is a key that is asked for together with both, since either may be on the other node while a slot moves
-- (isHere in lib/inbox.lua).
local function readMark(mark)
  local made, upto, round = string.match(redis.call('GET', mark) or '', '^(%d+) (%d+) ?(%d*)$')
  return made, tonumber(upto), tonumber(round) or 0
end
local function hasTicked(anchor, mark, ticked, kind, making, tick, round)
  redis.call('EXISTS', anchor, mark, ticked)
  local made, upto, last_round = readMark(mark)
  if made and tonumber(made) > tonumber(making) then return true end
  if kind == 't' and made == making then
    local ahead = upto - tick
    if ahead > 0 or (ahead == 0 and last_round >= tonumber(round)) then return true end
  end
  local void = kind == 'b' and redis.call('ZSCORE', ticked, making .. '/' .. tick .. '/b')
  if void and tonumber(round) <= tonumber(void) then return true end
  return redis.call('ZSCORE', ticked, making .. '/' .. tick) and true
end
-- `tick` and `round` are after those of the mark, if that is of the same making.
local function moveMark(mark, making, tick, round, now)
  redis.call('SET', mark, making .. ' ' .. tick .. (round == '0' and '' or ' ' .. round))
  redis.call('PEXPIREAT', mark, ms(now + KEPT_FOR))
end
local function addTicked(ticked, one, at, now)
  redis.call('ZADD', ticked, ms(at), one)
  local more = redis.call('ZCARD', ticked) - TICKS_KEPT
  if more > 0 then redis.call('ZREMRANGEBYRANK', ticked, 0, more - 1) end
  redis.call('PEXPIREAT', ticked, ms(now + KEPT_FOR))
end
local function noteTicked(mark, ticked, kind, making, tick, round, now)
  if kind == 'r' then return end
  if kind == 't' then
    moveMark(mark, making, tick, round, now)
  elseif readMark(mark) ~= making then
    moveMark(mark, making, '0', '0', now)
  else
    redis.call('PEXPIREAT', mark, ms(now + KEPT_FOR))
  end
  addTicked(ticked, making .. '/' .. tick, now, now)
end
-- The mark and the ticks of the schedule that a handoff is a run of.
local function ticksBeside(key, options)
  local partition, tenant = string.match(key, '^([^}]*}:)h:([^:]+:)')
  local owner = tenant .. string.match(options, ' S(%S+)')
  return partition .. 'tick:' .. owner, partition .. 'ticked:' .. owner
end
