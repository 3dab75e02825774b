#!lua flags=no-writes
-- Reads of a handoff what its child is to know, and moves nothing.
-- KEYS: 1 prefix:{tag}:h:tenant:id   the parent
-- ARGV: none
-- Replies: {'found', now, record, extra, mark}  mark stands for its payload, who passed it and to which inbox: 12 hex digits; nil where
--                         the payload is gone, and where the extra has the marks of the whole line
--          {'not_found'} {'newer'}
local record, extra = unpack(redis.call('HMGET', KEYS[1], 's', 'x'))

if not record then return { 'not_found' } end
local status, _, _, _, passed_by = string.match(record, RECORD)
if not status then return { 'newer' } end
if status == 'done' or extra and string.match(extra, ' c%x') then return { 'found', clock(), record, extra } end
-- What was passed has gone on to the last of its attempts. A root that is done or cancelled has none any more.
local key = KEYS[1]
local successor = extra and string.match(extra, ' i(%S+)')
while successor do
  key = string.sub(key, 1, #key - #successor) .. successor
  local its = redis.call('HGET', key, 'x')
  successor = its and string.match(its, ' i(%S+)')
end
local its_record = redis.call('HGET', key, 's')
local payload = its_record and not string.match(its_record, '^2?:?done ') and redis.call('HGET', key, 'p') or ''
if payload == '' then return { 'found', clock(), record, extra } end
local inbox = extra and string.match(extra, ' t(%S+)') or '-'
return { 'found', clock(), record, extra, string.sub(redis.sha1hex(passed_by .. ' ' .. inbox .. ' ' .. redis.sha1hex(payload)), 1, 12) }
