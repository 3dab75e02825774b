#!lua flags=no-writes
-- Reads an A2A task: all that its latest attempt has, which those may read who passed it (lib/tasks.lua).
-- KEYS: 1 prefix:{tag}:task:tenant:id   the task
-- ARGV: 1 prefix:{tag}:h:tenant:, which the keys of its attempts begin with  2 how many bytes payload or result, error,
--       details of the question and answer may have together  3 letters: p to read the payload, r the result; - to
--         read none of these
--       4 the number of a change: all later ones are read too; empty for none
-- Replies: {'found', now, id, record, extra, decision, stands, number, payload, result, fault, cancel_reason, progress,
--            question, details, answer, ended, change, …}  parts that don't exist are nil. id: the latest attempt's;
--                        stands: the task's state and since when; number: of its last change; fault, question,
--                        details and answer are fields e, q, u and a (lib/record.lua); ended: while an attempt after
--                        the first is pending, the change by which the one before ended
--          {'not_found'}
--          {'larger'}    they have more
--@include tasks
local task, most = KEYS[1], ARGV[2] + 0
local id, stands, number = unpack(redis.call('HMGET', task, 'latest', 'state', 'number'))
local key = ARGV[1] .. (id or '')
local record = id and redis.call('HGET', key, 's')

if not record then return { 'not_found' } end
local is_done, fields = string.match(record, '^[24]?:?done '), { 'x', 'd', 'c', 'g', 'q' }
local isRead = string.find(ARGV[3], is_done and 'r' or 'p', 1, true)
if ARGV[3] ~= '-' then
  local size = isRead and redis.call('HSTRLEN', key, 'p') or 0
  for at, field in ipairs({ 'e', 'u', 'a' }) do
    fields[5 + at] = field
    size = size + redis.call('HSTRLEN', key, field)
  end
  if size > most then return { 'larger' } end
end
local extra, decision, cancel_reason, progress, question, fault, details, answer =
  unpack(redis.call('HMGET', key, unpack(fields)))
local text = isRead and redis.call('HGET', key, 'p')
-- Empty once it was freed, or where there is no result.
if not text or text == '' then text = false end
local ended = false
if ARGV[3] ~= '-' and string.find(record, '^[2-5]?:?pending ') and extra and string.find(extra, ' o', 1, true) then
  -- Between two attempts a person's approval is all that can come.
  for _, change in ipairs(redis.call('ZRANGE', task .. ':changes', -4, -1)) do
    local what = string.match(change, '^%d+ %l %d+ (%l+) ')
    if what == 'failed' or what == 'declined' or what == 'expired' then ended = change end
  end
end
return { 'found', clock(), id, record, extra, decision, stands, tonumber(number), not is_done and text,
  is_done and text or false, fault or false, cancel_reason, progress, question, details or false, answer or false,
  ended, unpack(ARGV[4] ~= '' and redis.call('ZRANGE', task .. ':changes', '(' .. ARGV[4], '+inf', 'BYSCORE') or {}) }
