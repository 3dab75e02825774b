#!lua flags=no-writes
-- Reads all of a handoff, for those who may read everything.
-- KEYS: 1 prefix:{tag}:h:tenant:id   the handoff
-- ARGV: 1 how many bytes payload or result, error, answer and checkpoint may have together; absent for any
--       2 how many each but a payload may have, which has parts that may be shorter
-- Replies: {'found', now, record, payload, result, decision, extra, fault, cancel_reason, progress, question, answer,
--            checkpoint, target, counts}
--                        parts that don't exist are nil, as is a payload that was freed; fault is the error given to
--                        fail or the reason given to decline; question and answer are fields q and a, target and
--                        counts o and O (lib/record.lua);
--                        of result, fault and answer those that are too long are how many bytes they have
--          {'not_found'}
--          {'larger'}    they have more
local key, most = KEYS[1], ARGV[2] + 0
local main_size, fault_size, answer_size =
  redis.call('HSTRLEN', key, 'p'), redis.call('HSTRLEN', key, 'e'), redis.call('HSTRLEN', key, 'a')
if ARGV[1] and main_size + fault_size + answer_size + redis.call('HSTRLEN', key, 'k') > ARGV[1] + 0 then
  return { 'larger' }
end
local record, decision, extra, cancel_reason, progress, question, fault, answer, checkpoint, target, counts =
  unpack(redis.call('HMGET', key, 's', 'd', 'x', 'c', 'g', 'q', fault_size > most and 's' or 'e',
    answer_size > most and 's' or 'a', 'k', 'o', 'O'))

if not record then return { 'not_found' } end
local is_done = string.match(record, '^[24]?:?done ')
local is_long = is_done and main_size > most
-- Empty once it was freed.
local text = main_size > 0 and not is_long and redis.call('HGET', key, 'p')
return { 'found', clock(), record, not is_done and text, is_long and main_size or is_done and text or false,
  decision, extra, fault_size > most and fault_size or fault, cancel_reason, progress, question,
  answer_size > most and answer_size or answer, checkpoint, target, counts }
