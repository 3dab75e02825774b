-- Which ticks of a schedule ran, in the partition of its handoffs. prefix:{tag}:tick:tenant:name is a string: the
-- making of the schedule (microseconds), and up to which tick (ms) its ticker has come. prefix:{tag}:ticked:tenant:name
-- is a sorted set of the ticks that ran last, making/tick, by when (ms). Both outlive the longest catch_up by a day.
-- A tick makes one handoff at most: the mark moves in the script that makes it, and only ever forwards. So it makes no
-- difference how many replicas ask, what their clocks say, and when one that stood still goes on.
local TICKS_KEPT, KEPT_FOR = 128, 2764800000
-- `kind` is t for a tick in its turn, b for one that is made up for. `anchor` is a key that is asked for together with
-- both, since either may be on the other node while a slot moves (isHere in lib/inbox.lua).
local function hasTicked(anchor, mark, ticked, kind, making, tick)
  redis.call('EXISTS', anchor, mark, ticked)
  local made, upto = string.match(redis.call('GET', mark) or '', '^(%d+) (%d+)$')
  if made and tonumber(made) > tonumber(making) then return true end
  if kind == 't' and made == making and tonumber(upto) >= tonumber(tick) then return true end
  return redis.call('ZSCORE', ticked, making .. '/' .. tick) and true
end
local function moveMark(mark, making, tick, now)
  local made, upto = string.match(redis.call('GET', mark) or '', '^(%d+) (%d+)$')
  if made ~= making or tonumber(upto) < tonumber(tick) then redis.call('SET', mark, making .. ' ' .. tick) end
  redis.call('PEXPIREAT', mark, ms(now + KEPT_FOR))
end
local function noteTicked(mark, ticked, kind, making, tick, now)
  moveMark(mark, making, kind == 't' and tick or '0', now)
  redis.call('ZADD', ticked, ms(now), making .. '/' .. tick)
  local more = redis.call('ZCARD', ticked) - TICKS_KEPT
  if more > 0 then redis.call('ZREMRANGEBYRANK', ticked, 0, more - 1) end
  redis.call('PEXPIREAT', ticked, ms(now + KEPT_FOR))
end
-- The mark and the ticks of the schedule that a handoff is a run of.
local function ticksBeside(key, options)
  local partition, tenant = string.match(key, '^([^}]*}:)h:([^:]+:)')
  local owner = tenant .. string.match(options, ' S(%S+)')
  return partition .. 'tick:' .. owner, partition .. 'ticked:' .. owner
end
