#!lua flags=no-writes
-- Reads a file's record.
-- KEYS: 1 prefix:{tag}:file:tenant:id   the file (lib/files.lua)
-- ARGV: none
-- Replies: {'found', now, fields}  when it was made, its mark, agent, bytes, sha256 and words, and since when it is
--                                  whole, nil before
--          {'not_found'}
--@include files
local fields = fieldsOfFile(KEYS[1])

if not fields[1] then return { 'not_found' } end
local now = clock()
return { 'found', now, fields }
