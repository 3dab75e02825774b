#!lua flags=no-writes
-- Reads the beginning of a handoff's task, for a message to a person.
-- KEYS: 1 prefix:{tag}:h:tenant:id   the handoff
-- ARGV: none
-- Replies: {'found', task, extra}  task: the beginning of a JSON string, or of the sealed payload; nil where there is
--                            none any more: it was freed, has moved to the next attempt, or the result is in its place
local record, payload, extra = unpack(redis.call('HMGET', KEYS[1], 's', 'p', 'x'))
local status = string.match(record or '', '^[2-5]?:?(%l+)')
local task = status and status ~= 'done' and payload and taskOf(payload) or ''
return { 'found', task ~= '' and task or false, extra }
