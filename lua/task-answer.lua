#!lua
-- Notes which question of an A2A task a message answers, before it does: the same message that is sent again never
-- answers a later one.
-- KEYS: 1 prefix:{tag}:task:tenant:id   the task (lib/tasks.lua); the note is a field of it, by the message
-- ARGV: 1 the call's deadline (ms)  2 the message's digest, as marks  3 the question's id; empty to note nothing; - to
--         forget the note, since the answer was refused
-- Replies: {'known', question}   the message was noted before, for this question
--          {'noted', question}   it is now; or, without a question, it isn't
--          {'not_found'}
--@include late
local task, marks, question = KEYS[1], ARGV[2], ARGV[3]

if redis.call('EXISTS', task) == 0 then return { 'not_found' } end
local known, field
for mark in string.gmatch(marks, '[^,]+') do
  field = 'message:' .. mark
  known = redis.call('HGET', task, field)
  if known then break end
end
if known and question ~= '-' then return { 'known', known } end
if known then redis.call('HDEL', task, field) end
if question ~= '' and question ~= '-' then redis.call('HSET', task, 'message:' .. firstOf(marks), question) end
return { 'noted', question }
