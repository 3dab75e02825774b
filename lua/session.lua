#!lua flags=no-writes
-- Reads which key a session belongs to.
-- KEYS: 1 prefix:{tag}:s:digest   the session, by its secret's digest
-- ARGV: none
-- Replies: {'found', mark}  the mark of the key that opened it
--          {'not_found'}
local mark = redis.call('GET', KEYS[1])

if not mark then return { 'not_found' } end
return { 'found', mark }
