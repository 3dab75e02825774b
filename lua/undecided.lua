#!lua flags=no-writes
-- Reads what a person's decision on a handoff is signed with (decide.lua).
-- KEYS: 1 prefix:{tag}:h:tenant:id   the handoff
-- ARGV: none
-- Replies: {'found', now, record, extra, digest}  extra and digest are nil where there is none
--          {'not_found'}
local record, extra, digest = unpack(redis.call('HMGET', KEYS[1], 's', 'x', 'h'))
if not record then return { 'not_found' } end
return { 'found', clock(), record, extra, digest }
