#!lua flags=no-writes
-- Reads what a list or a picture says of a handoff: its title, and what it comes after.
-- KEYS: 1 prefix:{tag}:h:tenant:id   the handoff
-- ARGV: none
-- Replies: {'described', title, after}  the beginning of a JSON string, and field b (lib/after.lua); nil where there is
--                  none
return { 'described', unpack(redis.call('HMGET', KEYS[1], 'n', 'b')) }
