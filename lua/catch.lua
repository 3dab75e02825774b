#!lua flags=allow-oom
-- pending -> caught. A catch leads to memory being freed, so it also runs when Redis is full (allow-oom).
-- KEYS: 1 prefix:{tag}:h:tenant:id   the handoff
--       2 prefix:{tag}:due           live handoffs by when the sweep is to look at them
-- ARGV: 1 the call's deadline (ms)  2 catch_token  3 caught_by  4 work_ttl (ms)  5 retention (ms)  6 tenant:id
--       7 the inboxes that the key is limited to, each between spaces; empty for any
-- Replies: {'caught', created, payload, decision, traceparent, record, extra, schema}    it is this agent's now; the decision is nil if
--                                                                 nobody had to decide, the traceparent if none was passed; the parts after
--                                                                 it are there only with an extra, the schema only if one was passed
--          {'replayed', created, payload, decision, traceparent, …}  the same operation caught it before; nothing changed
--          {'not_found'}
--          {'not_addressee', now, record, extra, decision}  it is for an inbox that this key may not catch from; nothing changed
--          {'expired', now, record, extra, decision} {'cancelled', …} {'rejected', …} {'already_caught', …} {'already_done', …}
--          {'already_failed', …} {'already_declined', …} {'approval_required', …} {'not_yet', …}
--          {'newer'}                                 a newer version wrote it; nothing changed
--          {'late'}                                  the call's deadline is over; nothing changed
local key, due = KEYS[1], KEYS[2]
local token, agent, work_ttl, retention, member, inboxes = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
local now, micros = clock()
local record, payload, decision = unpack(redis.call('HMGET', key, 's', 'p', 'd'))

if late(ARGV[1], now) then return { 'late' } end
if not record then return { 'not_found' } end
local status, approval, created, expires, _, passed, until_done, by, made_by = string.match(record, RECORD)
if not status then return { 'newer' } end
local extra, schema = false, false
if string.sub(record, 1, 2) == '2:' then extra, schema = unpack(redis.call('HMGET', key, 'x', 'r')) end
local inbox = inboxOf(key, member, extra)
if inbox and inboxes ~= '' and not string.find(inboxes, ' ' .. string.match(extra, ' t(%S+)') .. ' ', 1, true) then return { 'not_addressee', now, record, extra, decision } end
local trace = string.match(passed, TRACE)
if status == 'caught' then
  local beat = extra and string.match(extra, ' h(%d+)')
  if now >= tonumber(until_done) or beat and now >= tonumber(beat) then return { 'expired', now, record, extra } end
  if by ~= agent or made_by ~= token then return { 'already_caught', now, record, extra } end
  return { 'replayed', tonumber(created), payload, decision, trace or false, extra and record, extra, schema }
end
if status == 'expired' or status == 'pending' and now >= tonumber(expires) then return { 'expired', now, record, extra } end
if status == 'cancelled' then return { 'cancelled', now, record, extra } end
if status == 'rejected' then return { 'rejected', now, record, extra, decision } end
if status == 'done' then return { 'already_done', now, record, extra } end
if status == 'failed' then return { 'already_failed', now, record, extra } end
if status == 'declined' then return { 'already_declined', now, record, extra } end
if approval == 'waiting' then return { 'approval_required', now, record, extra } end
local available = extra and string.match(extra, ' a(%d+)')
if available and now < tonumber(available) then return { 'not_yet', now, record, extra } end

local outbox = openOutbox(key, key, member)
if inbox then leaveList(key, inbox, member) end
record, extra = becomeCaught(key, due, member, record, extra, expires, token, agent, work_ttl, retention, now)
tell(outbox, micros, 'caught', member, record, extra, agent)
return { 'caught', tonumber(created), payload, decision, trace or false, extra and record, extra, schema }
