#!lua flags=allow-oom
-- pending -> caught. Runs in a full Redis too: work that is done frees memory.
-- KEYS: 1 prefix:{tag}:h:tenant:id  the handoff  2 prefix:{tag}:due:tenant  its tenant's live handoffs (lib/due.lua)
-- ARGV: 1 the call's deadline (ms)  2 caught_by, a space, and catch_token
--       3 the inboxes that the key is limited to, each between spaces; empty or absent for any
--       4 how many bytes the payload and the schema may have; absent for as many as a request alone may read
--       5 what the worker calls itself; absent if it says nothing
-- Replies: {'caught', created, payload, decision, traceparent, record, extra, schema, checkpoint}  it is this agent's
--                      now; created is text; the decision is nil if none was needed, the traceparent if none was
--                      passed; the parts after that are there only with an extra, the schema only if one was passed,
--                      the checkpoint only if there is one
--          {'replayed', created, payload, decision, traceparent, …}  the same operation caught it before
--          {'not_found'}
--          {'not_addressee', now, record, extra, decision}  it is for an inbox that this key may not catch from
--          {'expired', now, record, extra, decision} {'cancelled', …} {'rejected', …} {'already_caught', …}
--          {'already_done', …} {'already_failed', …} {'already_declined', …} {'approval_required', …} {'blocked', …}
--          {'not_yet', …}
--          {'locked', name}  it could be caught, or was before, but this replica doesn't have the key of this name
--          {'larger'}  likewise, but has more bytes than ARGV 4
--          {'newer'}
--@include appending
--@if several
local PAYLOAD = 3
--@include several
--@end
local call, key, due, words, max_bytes = redis.call, KEYS[1], KEYS[2], ARGV[2], (ARGV[4] or READ_ALONE) + 0
--@include late
-- Before the payload is read: that is what takes Redis long.
local isLarger = call('HSTRLEN', key, 'p') > max_bytes
local found = call('HMGET', key, 's', isLarger and 's' or 'p')
local record, payload = found[1], found[2]

if not record then return { 'not_found' } end
-- Most are plain, and have no trace. Both times in a record have 13 digits.
local created, expires
if string.sub(record, 1, 13) == 'pending none ' then
  created, expires = string.sub(record, 14, 26), string.sub(record, 28, 40) + 0
end
local decision, trace, extra, schema, checkpoint
local isPlain = created and now < expires and not ARGV[5] and not string.find(record, '/', 1, true)
if isPlain and isLarger then return { 'larger' } end
if not isPlain then
  --@include events inbox due work
  local status, approval, passed, until_done, by, made_by, _
  status, approval, created, expires, _, passed, until_done, by, made_by = string.match(record, RECORD)
  if not status then return { 'newer' } end
  decision, extra, schema = unpack(call('HMGET', key, 'd', 'x', 'r'))
  if string.sub(record, 2, 2) ~= ':' then extra, schema = false, false end
  checkpoint = checkpointOf(key, extra) or nil
  if (schema or checkpoint) and #(payload or '') + #(schema or '') + #(checkpoint or '') > max_bytes then
    isLarger = true
  end
  local member = string.match(key, MEMBER)
  local inbox = inboxOf(key, member, extra)
  if not isAddressed(extra, ARGV[3] ~= '' and ARGV[3]) then return { 'not_addressee', now, record, extra, decision } end
  trace = string.match(passed, TRACE) or false
  local over = overAs(key, record, extra, now, status, expires, until_done)
  if over then return over end
  if status == 'caught' then
    if by .. ' ' .. made_by ~= words then return { 'already_caught', now, record, extra } end
    local lock = lockOn(extra, decision, checkpoint)
    if lock then return { 'locked', lock } end
    if isLarger then return { 'larger' } end
    return { 'replayed', created, payload, decision, trace, extra and record, extra, schema, checkpoint }
  end
  if approval == 'waiting' then return { 'approval_required', now, record, extra } end
  if isBlockedRecord(record) then return { 'blocked', now, record, extra } end
  if now < tonumber(extra and string.match(extra, ' a(%d+)') or 0) then return { 'not_yet', now, record, extra } end
  local lock = lockOn(extra, decision, checkpoint)
  if lock then return { 'locked', lock } end
  if isLarger then return { 'larger' } end

  local outbox = openOutbox(key, key, member)
  openCalls(key, member, extra)
  if inbox then
    refuseWhileMoving(key, inbox)
    leavePending(key, inbox, member, extra)
    enterCaught(inbox, member, extra)
  end
  record, extra = becomeCaught(key, due, record, extra, expires, words, WORK_TTL, RETENTION, now, formatted, ARGV[5])
  append(outbox, seconds .. micros, 'caught', member, record, extra, string.match(words, '%S+'))
else
  -- This does what becomeCaught does, with less to define and to ask.
  --@if events
  appendPlain(key, due, key, string.find(key, BEFORE_MEMBER, 1, true) + 4, seconds .. micros, 'caught caught ',
    string.match(record, '%S+', 42), string.match(words, '%S+'), created)
  --@end
  local deadline, until_done = now + WORK_TTL, string.format('%d', now + WORK_TTL)
  record = 'caught' .. string.sub(record, 8) .. ' ' .. formatted .. ' ' .. until_done .. ' ' .. words
  call('HSET', key, 's', record)
  call('PEXPIREAT', key, string.format('%d', deadline + RETENTION))
  if deadline < expires then
    --@include due
    setDue(key, due, deadline, string.match(key, MEMBER), now)
  end
  redis.pcall('SPUBLISH', key, 'caught')
end
local reply = { 'caught', created, payload, decision, trace, extra and record, extra, schema, checkpoint }
--@include reply
