#!lua
-- Begins a person's session.
-- KEYS: 1 prefix:{tag}:s:digest   the session, by its secret's digest
-- ARGV: 1 the call's deadline (ms)  2 the mark of the key that opens it  3 how long it lasts (ms)
-- Replies: {'open'}  it exists from now on; calling twice does the same as calling once
--          {'late'}  the call's deadline is over; nothing changed
if clock() > ARGV[1] + 0 then return { 'late' } end

redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return { 'open' }
