#!lua
-- Writes as pass does, so that Redis refuses both when it is full: the mark of this data set, which is made once. Where
-- it is gone or is another one, Redis has lost its data, or is another Redis.
-- KEYS: 1 prefix:{tag}:dataset   the mark
-- ARGV: 1 the call's deadline (ms)  2 the mark if there is none
--       3 for how long it stays without being written again (ms)
-- Replies: {'written', mark}
--          {'no_room', mark}  Redis is full, but would take writes otherwise; nothing changed; the mark is nil if there
--                             is none. It isn't `full`, which says of other scripts that a request was refused, and is
--                             counted
--          {'late'}           the call's deadline is over; nothing changed
-- Uses: full
local mark = redis.call('GET', KEYS[1])

if late(ARGV[1], clock()) then return { 'late' } end
if isFull(1e9) then return { 'no_room', mark } end

mark = mark or ARGV[2]
redis.call('SET', KEYS[1], mark, 'PX', ARGV[3])
return { 'written', mark }
