#!lua flags=no-writes
-- Reads the whole of a handoff for a person who is to decide. Changes nothing.
-- KEYS: 1 prefix:{tag}:h:tenant:id   the handoff
-- ARGV: none
-- Replies: {'found', now, record, payload, decision, digest, extra, schema}  parts that don't exist are nil, as is a
--                      payload that was freed
--          {'not_found'}
local record, payload, decision, digest, extra, schema =
  unpack(redis.call('HMGET', KEYS[1], 's', 'p', 'd', 'h', 'x', 'r'))

if not record then return { 'not_found' } end
if payload == '' or string.match(record, '^2?:?done ') then payload = false end
return { 'found', clock(), record, payload, decision, digest, extra, schema }
