#!lua
-- caught -> done: the result takes the payload's place.
-- KEYS: 1 prefix:{tag}:h:tenant:id  the handoff  2 prefix:{tag}:due:tenant  its tenant's live handoffs (lib/due.lua)
-- ARGV: 1 the call's deadline (ms)  2 the calling agent  3 done_token, as marks
--       4 the result, JSON text, or empty; if the result was checked, the digest of the schema that it satisfies
--       5 the checked result; but where 6 is there, what the worker calls itself, and 4 is empty without a schema; ?
--         alone: could it be done, or was it by this operation?
--       6 that result
-- Replies: (now)  from now on
--          {'replayed', now, record, extra}  the same operation made it done before; nothing changed
--          {'unchecked', digest, schema, extra}  it could be done once the result has been checked against this schema;
--                    these are empty where ARGV 5 only asks
--          {'not_found'} {'expired', now, record, extra} {'rejected', now, record, extra, decision} {'cancelled', …}
--          {'not_caught', …} {'not_the_catcher', …} {'already_done', …} {'already_failed', …} {'already_declined', …}
--          {'newer'} {'full'}
--@include appending
--@if several
local PAYLOAD = 3
--@include several
--@end
local call, key, due, agent, tokens, result, satisfied, worker =
  redis.call, KEYS[1], KEYS[2], ARGV[2], ARGV[3], ARGV[4], nil, nil
if ARGV[5] then
  satisfied, result = result, ARGV[5]
  if ARGV[6] then worker, result = result, ARGV[6] end
end
--@include late
local record = call('HGET', key, 's')

-- Most are plain, and this agent has them. Its name is then the last word but one, after the deadline's 13 digits; 41
-- is after the place of passed_by.
local extra, is_named
local at = record and string.find(record, ' ' .. agent .. ' ', 41, true)
if not at or string.sub(record, 1, 7) ~= 'caught ' or string.find(record, ' ', at + #agent + 2, true) or
  worker or now >= string.sub(record, at - 13, at - 1) + 0 then
  --@include work
  extra = record and string.sub(record, 2, 2) == ':' and call('HGET', key, 'x')
  local refusal = unheld(key, record, extra, agent, tokens, now)
  if refusal then return refusal end
  if worker == '?' then return { 'unchecked', '', '' } end
  local wanted = extra and string.match(extra, ' s(%S+)')
  if wanted and wanted ~= satisfied then return { 'unchecked', wanted, call('HGET', key, 'r'), extra } end
  local named = worker and withWorker(extra, worker)
  if named and named ~= extra then
    record = extra and record or '2:' .. record
    extra, is_named = named, true
  end
end
--@if full
-- A callback that has the result keeps it once more, and so does each push config of an A2A task.
local copies = extra and string.find(extra, ' C%l+1') and 1 or 0
if extra and string.find(extra, ' M', 1, true) then
  --@include tasks
  copies = copies + pushesOf(key, string.match(key, MEMBER), extra)
end
local copied = #result <= 262144 and copies * #result or 0
if isFull(#result + copied - call('HSTRLEN', key, 'p')) then return { 'full' } end
--@end

local token, first = firstOf(tokens), string.byte(result)
local isSealed = first == 1 or first == 2
local member = string.sub(key, string.find(key, BEFORE_MEMBER, 1, true) + 4)
-- The record only grows: its first word changes, and this transition's words are appended.
if extra then
  --@include events inbox work asking ended
  local outbox, ended, runs = openOutbox(key, key, member), openEnded(key, member, extra), nil
  openCalls(key, member, extra)
  if string.find(extra, ' J', 1, true) then
    --@include runs
    runs = openRuns(key, member, extra)
  end
  local ask = openAsk(key, member, extra)
  if not string.find(extra, ' G', 1, true) then
    leaveCaught(key, member, extra)
  else
    --@include groups work
    leaveAllCaught(key, member, extra, seconds .. micros)
  end
  if string.find(extra, ' K', 1, true) then extra, is_named = dropCheckpoint(key, extra), true end
  if ask then
    local ended
    extra, ended = closeAsk(ask, member, record, extra, now)
    call('HSET', key, 'x', extra)
    append(outbox, seconds .. micros, 'ask_ended', member, record, extra, agent, ended)
  elseif is_named then
    call('HSET', key, 'x', extra)
  end
  record = (isSealed and '4:' or string.sub(record, 1, 2)) .. 'done' .. string.sub(record, 9) .. ' ' .. formatted ..
    ' ' .. token
  append(outbox, seconds .. micros, 'done', member, record, extra, agent, nil, result == '' and 'null' or result)
  if ended then enterOver(ended, member, formatted, now) end
  if runs then
    --@include runs
    endRuns(runs, member, 'done', nil, now, seconds .. micros)
  end
else
  -- Both times in the record have 13 digits, and begin at 13 and 27, or four later.
  --@if events
  appendPlain(key, due, member, 1, seconds .. micros, 'done done ', string.match(record, ' %d+ (%S+)', 20), agent,
    string.match(record, '%d+', 13))
  --@end
  record = (isSealed and '4:done' or 'done') .. string.sub(record, 7) .. ' ' .. formatted .. ' ' .. token
end
call('HSET', key, 's', record, 'p', result)
call('PEXPIREAT', key, string.format('%d', now + RETENTION))
redis.pcall('SPUBLISH', key, 'done')
if extra and string.find(extra, ' W', 1, true) then
  --@include events inbox due ended runs after
  leaveDue(key, due, member, extra, 'done', now, seconds .. micros)
else
  call('ZREM', due, member)
end
local reply = now
--@include reply
