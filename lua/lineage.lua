#!lua flags=no-writes
-- Reads a child's parent, for the child's lineage.
-- KEYS: 1 prefix:{tag}:h:tenant:id   the parent
-- ARGV: 1 how many bytes the payload may have; absent for any
-- Replies: {'found', now, record, extra, mark, payload}  mark: 12 hex digits of a digest of its payload, passer and
--                         inbox; nil if the payload is gone, or if the extra has the marks of the whole line; where the
--                         payload is sealed, it comes in place of the mark
--          {'larger'}      its payload has too many bytes
--          {'not_found'} {'newer'}
--@include inbox
local record, extra = unpack(redis.call('HMGET', KEYS[1], 's', 'x'))

if not record then return { 'not_found' } end
local status, _, _, _, passed_by = string.match(record, RECORD)
if not status then return { 'newer' } end
if status == 'done' or extra and string.match(extra, ' c[%x~]') then return { 'found', clock(), record, extra } end
-- The payload has moved on to the last attempt. A root that is done or cancelled has none any more.
local key = KEYS[1]
local successor = extra and string.match(extra, ' i(%S+)')
while successor do
  key = string.sub(key, 1, #key - #successor) .. successor
  local its = redis.call('HGET', key, 'x')
  if not its then isHere(KEYS[1], key) end
  successor = its and string.match(its, ' i(%S+)')
end
local its_record = redis.call('HGET', key, 's')
local isThere = its_record and not string.match(its_record, '^[24]?:?done ')
if isThere and ARGV[1] and redis.call('HSTRLEN', key, 'p') > ARGV[1] + 0 then return { 'larger' } end
local payload = isThere and redis.call('HGET', key, 'p') or ''
if payload == '' then return { 'found', clock(), record, extra } end
local first = string.byte(payload)
if first == 1 or first == 2 then return { 'found', clock(), record, extra, false, payload } end
local inbox = extra and string.match(extra, ' t(%S+)') or '-'
return { 'found', clock(), record, extra,
  string.sub(redis.sha1hex(passed_by .. ' ' .. inbox .. ' ' .. redis.sha1hex(payload)), 1, 12) }
