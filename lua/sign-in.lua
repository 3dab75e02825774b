#!lua flags=allow-oom
-- A person's session begins. People decide when Redis is full as well (allow-oom).
-- KEYS: 1 prefix:{tag}:s:digest   the session, by its secret's digest
-- ARGV: 1 the call's deadline (ms)  2 what stands for the key that opens it  3 how long it lasts (ms)
-- Replies: {'open'}  it is there from now on; asking twice leaves what asking once does
--          {'late'}  the call's deadline is over; nothing changed
if late(ARGV[1], clock()) then return { 'late' } end

redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return { 'open' }
