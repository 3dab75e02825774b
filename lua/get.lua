#!lua flags=no-writes
-- Reads a note: the mark of the key that opened a session, where a search for what to change ended (store/lists.ts),
-- where webhooks may send (store/webhooks.ts), which secret an agent's callbacks have (callback-rotate.lua), the A2A
-- card of an inbox (card-set.lua), or which replica of version 0.2.0 sweeps.
-- KEYS: 1 prefix:{tag}:s:digest or prefix:{tag}:search:digest or prefix:{tag}:allowed or
--         prefix:{tag}:secret:tenant:agent or prefix:{tag}:i:tenant:inbox:card or prefix:{tag}:sweeper   a session, by
--         its secret's digest; a place in a list, by a digest of who searches and for what
-- ARGV: none
-- Replies: {'found', note, now}
--          {'not_found'}
local note = redis.call('GET', KEYS[1])

if not note then return { 'not_found' } end
local now = clock()
return { 'found', note, now }
