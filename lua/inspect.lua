#!lua flags=no-writes
-- Reads the whole of a handoff for a person who is to decide.
-- KEYS: 1 prefix:{tag}:h:tenant:id   the handoff
-- ARGV: 1 how many bytes the payload and the schema may have together; absent for any
-- Replies: {'found', now, record, payload, decision, digest, extra, schema, target}  parts that don't exist are nil, as
--                      is a payload that was freed; target is field o
--          {'not_found'}
--          {'larger'}     they have more
local max = ARGV[1]
if max and redis.call('HSTRLEN', KEYS[1], 'p') + redis.call('HSTRLEN', KEYS[1], 'r') > max + 0 then
  return { 'larger' }
end
local record, payload, decision, digest, extra, schema, target =
  unpack(redis.call('HMGET', KEYS[1], 's', 'p', 'd', 'h', 'x', 'r', 'o'))

if not record then return { 'not_found' } end
if payload == '' or string.match(record, '^[24]?:?done ') then payload = false end
return { 'found', clock(), record, payload, decision, digest, extra, schema, target or nil }
