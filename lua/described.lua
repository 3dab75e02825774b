#!lua flags=no-writes
-- Reads what a list or a picture says of a handoff: its title, and what it comes after.
-- KEYS: 1 prefix:{tag}:h:tenant:id   the handoff
-- ARGV: none
-- Replies: {'described', title, after, first}  the beginning of a JSON string, field b (lib/after.lua), and the id of
--                  the first attempt, unless it is this one; nil where there is none
local title, after, extra = unpack(redis.call('HMGET', KEYS[1], 'n', 'b', 'x'))
return { 'described', title, after, extra and string.match(extra, ' F(%S+)') or nil }
