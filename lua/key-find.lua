#!lua flags=no-writes
-- Reads a key. The caller decides, by this clock, whether it has ended.
-- KEYS: 1 prefix:{tag}:k:id   the key (key-create says what is in it)
-- ARGV: none
-- Replies: {'found', now, fields} {'not_found'}
local fields = redis.call('HGETALL', KEYS[1])

if #fields == 0 then return { 'not_found' } end
return { 'found', clock(), fields }
