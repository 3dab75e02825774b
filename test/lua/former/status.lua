#!lua flags=no-writes
-- Reads a handoff and moves nothing: Redis itself refuses a write from here.
-- KEYS: 1 prefix:{tag}:h:tenant:id   the handoff
-- ARGV: none
-- Replies: {'found', now, record, result, decision}  result and decision are nil where there is none
--          {'not_found'}
local record, decision = unpack(redis.call('HMGET', KEYS[1], 's', 'd'))

if not record then return { 'not_found' } end
-- Before it is done there is the payload, which is not to be seen here, nor carried through Lua.
local result = string.sub(record, 1, 5) == 'done ' and redis.call('HGET', KEYS[1], 'p')
return { 'found', clock(), record, result ~= '' and result, decision }
