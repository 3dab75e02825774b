#!lua
-- Writes the mark of this data set, which is made once. If the mark is gone or is another one, Redis has lost its data,
-- or is another Redis. A full Redis refuses this write as it refuses a pass.
-- KEYS: 1 prefix:{tag}:dataset   the mark  2 prefix:{tag}:dataset:replaced   a note of that (ms)
-- ARGV: 1 the call's deadline (ms)  2 the mark if there is none
--       3 for how long it stays without being written again (ms)
--       4 the mark that the caller knows; empty for none  5 how long the note stays (ms)
-- Replies: {'written', mark, replaced, now}  replaced: when a replica noticed it last (ms); nil if there is no note
--          {'no_room', mark, replaced, now}  Redis is full, but would take writes otherwise; nothing changed; the mark
--                             is nil if there is none. It isn't `full`, which is counted as a refused request
--@include late
local mark, replaced = redis.call('GET', KEYS[1]), redis.call('GET', KEYS[2])

--@if full
if isFull(1e9) then return { 'no_room', mark, replaced, now } end
--@end

if ARGV[4] ~= '' and ARGV[4] ~= mark then
  replaced = now
  redis.call('SET', KEYS[2], replaced, 'PX', ARGV[5])
end

mark = mark or ARGV[2]
redis.call('SET', KEYS[1], mark, 'PX', ARGV[3])
return { 'written', mark, replaced, now }
