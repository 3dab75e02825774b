#!lua flags=no-writes
-- Reads a handoff and moves nothing: Redis itself refuses a write from here.
-- KEYS: 1 prefix:{tag}:h:tenant:id   the handoff
-- ARGV: none
-- Replies: {'found', now, record, result, decision}  result and decision are nil where there is none
--          {'not_found'}
local record, result, decision = unpack(redis.call('HMGET', KEYS[1], 's', 'r', 'd'))

if not record then return { 'not_found' } end
return { 'found', clock(), record, result, decision }
