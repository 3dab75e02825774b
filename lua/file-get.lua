#!lua flags=no-writes
-- Reads a file's record.
-- KEYS: 1 prefix:{tag}:file:tenant:id   the file (lib/files.lua)
-- ARGV: none
-- Replies: {'found', now, fields}  each field's name and value
--          {'not_found'}
local fields = redis.call('HGETALL', KEYS[1])

if #fields == 0 then return { 'not_found' } end
local now = clock()
return { 'found', now, fields }
