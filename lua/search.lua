#!lua flags=no-writes
-- Reads where a search for what to change ended (store/lists.ts).
-- KEYS: 1 prefix:{tag}:search:digest   a place in a list, by a digest of who searches and for what
-- ARGV: none
-- Replies: {'found', place}
--          {'not_found'}
local place = redis.call('GET', KEYS[1])

if not place then return { 'not_found' } end
return { 'found', place }
