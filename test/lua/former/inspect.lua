#!lua flags=no-writes
-- Reads the whole of a handoff for a person who is to decide, and moves nothing.
-- KEYS: 1 prefix:{tag}:h:tenant:id   the handoff
-- ARGV: none
-- Replies: {'found', now, record, payload, decision}  the payload is nil once it is gone, the decision where there is none
--          {'not_found'}
local record, payload, decision = unpack(redis.call('HMGET', KEYS[1], 's', 'p', 'd'))

if not record then return { 'not_found' } end
if payload == '' or string.sub(record, 1, 5) == 'done ' then payload = false end
return { 'found', clock(), record, payload, decision }
