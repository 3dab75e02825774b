#!lua
-- Writes a replica's sign that Redis takes its writes. Redis judges it as it judges pass, so it refuses both when it is full.
-- KEYS: 1 prefix:{tag}:ready:replica   the sign
-- ARGV: 1 the call's deadline (ms)  2 for how long it stays (ms)
-- Replies: {'written'}
--          {'full'}  Redis is full, but would take writes otherwise; nothing changed
--          {'late'}  the call's deadline is over; nothing changed
if late(ARGV[1], clock()) then return { 'late' } end
if isFull(1e9) then return { 'full' } end

redis.call('SET', KEYS[1], '', 'PX', ARGV[2])
return { 'written' }
