#!lua flags=no-writes
-- Reads a note: the mark of the key that opened a session, where a search for what to change ended (store/lists.ts), or
-- where webhooks may send (store/webhooks.ts).
-- KEYS: 1 prefix:{tag}:s:digest or prefix:{tag}:search:digest or prefix:{tag}:allowed   a session, by its secret's
--         digest; a place in a list, by a digest of who searches and for what
-- ARGV: none
-- Replies: {'found', note} {'not_found'}
local note = redis.call('GET', KEYS[1])

if not note then return { 'not_found' } end
return { 'found', note }
