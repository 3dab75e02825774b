#!lua flags=no-writes
-- Reads whose session it is.
-- KEYS: 1 prefix:{tag}:s:digest   the session, by its secret's digest
-- ARGV: none
-- Replies: {'found', key_digest}  the digest of the key that opened it
--          {'not_found'}
local key_digest = redis.call('GET', KEYS[1])

if not key_digest then return { 'not_found' } end
return { 'found', key_digest }
