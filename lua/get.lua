#!lua flags=no-writes
-- Reads a note: the mark of the key that opened a session, or where a search for what to change ended (store/lists.ts).
-- KEYS: 1 prefix:{tag}:s:digest or prefix:{tag}:search:digest   a session, by its secret's digest; a place in a list,
--         by a digest of who searches and for what
-- ARGV: none
-- Replies: {'found', note} {'not_found'}
local note = redis.call('GET', KEYS[1])

if not note then return { 'not_found' } end
return { 'found', note }
