#!lua flags=no-writes
-- Reads whose session it is.
-- KEYS: 1 prefix:{tag}:s:digest   the session, by its secret's digest
-- ARGV: none
-- Replies: {'found', mark}  what stands for the key that opened it
--          {'not_found'}
local mark = redis.call('GET', KEYS[1])

if not mark then return { 'not_found' } end
return { 'found', mark }
