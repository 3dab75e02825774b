#!lua flags=no-writes
-- Reads the latest question of a handoff, with its answer.
-- KEYS: 1 prefix:{tag}:h:tenant:id   the handoff
-- ARGV: 1 how many bytes texts and answer may have together; absent for any
-- Replies: {'found', now, record, extra, question, texts, answer}  fields q, u and a (lib/record.lua); parts that don't
--                      exist are nil; texts is how many bytes they have if those are more than may be, and answer nil
--          {'not_found'}
local key, longer = KEYS[1], false
if ARGV[1] then
  longer = redis.call('HSTRLEN', key, 'u') + redis.call('HSTRLEN', key, 'a')
  if longer <= ARGV[1] + 0 then longer = false end
end
local record, extra, question, texts, answer =
  unpack(redis.call('HMGET', key, 's', 'x', 'q', longer and 's' or 'u', longer and 's' or 'a'))

if not record then return { 'not_found' } end
if longer then texts, answer = longer, false end
return { 'found', clock(), record, extra, question, texts, answer }
