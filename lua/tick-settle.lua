#!lua flags=allow-oom
-- Settles what became of a tick that a replica began and didn't report: it ran, or it never will (lib/ticks.lua).
-- KEYS: 1 prefix:{tag}:tick:tenant:name   up to which tick its ticker has come
--       2 prefix:{tag}:ticked:tenant:name   the ticks that ran last
--       3 prefix:{tag}:h:tenant:id   its handoff, if there is one
-- ARGV: 1 the call's deadline (ms)  2 the making of the schedule (microseconds)  3 the tick (ms)  4 its round
--       5 its kind (lib/ticks.lua): of kind b, what is begun in a later round may still run
-- Replies: {'ran'}   it has made its handoff
--          {'void'}  it hasn't, and from now on it can't
--@include late ticks
local mark, ticked, handoff, making, tick, round, kind = KEYS[1], KEYS[2], KEYS[3], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
-- Of the ticks that ran only the last ones are known; and while the slot moves, each key may be on the other node.
redis.call('EXISTS', mark, ticked, handoff)
if redis.call('EXISTS', handoff) == 1 or redis.call('ZSCORE', ticked, making .. '/' .. tick) then return { 'ran' } end
if not hasTicked(mark, mark, ticked, kind, making, tick, round) then
  if kind == 't' then
    moveMark(mark, making, tick, round, nil, now)
  elseif kind == 'b' then
    moveMark(mark, making, nil, nil, round, now)
  else
    addTicked(ticked, making, tick, now)
  end
end
return { 'void' }
