#!lua flags=no-writes
-- Reads the beginning of a handoff's task, for a message to a person.
-- KEYS: 1 prefix:{tag}:h:tenant:id   the handoff
-- ARGV: none
-- Replies: {'found', task}   task: the beginning of a JSON string; nil where there is none any more: it was freed, has
--                            moved to the next attempt, or the result is in its place
local record, payload = unpack(redis.call('HMGET', KEYS[1], 's', 'p'))
local status = string.match(record or '', '^[23]?:?(%l+)')
local task = status and status ~= 'done' and payload and taskOf(payload) or ''
return { 'found', task ~= '' and task or false }
