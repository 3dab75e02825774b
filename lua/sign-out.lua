#!lua flags=allow-oom
-- Ends a session.
-- KEYS: 1 prefix:{tag}:s:digest   the session, by its secret's digest; its end is published on the channel of the same
--                                 name
-- ARGV: 1 the call's deadline (ms)
-- Replies: {'ended'}  its secret is worthless from now on
--          {'late'}   the call's deadline is over; nothing changed
if clock() > ARGV[1] + 0 then return { 'late' } end

redis.call('DEL', KEYS[1])
redis.pcall('SPUBLISH', KEYS[1], 'ended')
return { 'ended' }
