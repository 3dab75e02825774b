#!lua
-- pending -> cancelled, caught -> cancelled: its passer, or an operator, takes it back. Once it is caught, that needs
-- force; without force its catcher is asked to stop.
-- KEYS: 1 prefix:{tag}:h:tenant:id  the handoff  2 prefix:{tag}:due:tenant  its tenant's live handoffs (lib/due.lua)
-- ARGV: 1 the call's deadline (ms)  2 the calling agent; empty for the service itself  3 retention (ms)  4 tenant:id
--       5 1 for an operator, who may cancel any handoff; 2 for an operator who cancels it only if it is pending; else 0
--       6 1 for force, else 0
--       7 the reason, JSON text; empty for none
-- Replies: {'cancelled', now, record, extra}  it is cancelled now
--          {'replayed', now, record, extra}   it was cancelled before; nothing changed
--          {'requested', now, record, extra}  it is caught, and its catcher is asked to stop
--          {'not_found'}  or, for ARGV 5 = 2, it isn't pending
--          {'not_the_passer', now, record, extra, decision} {'expired', now, record, extra}
--          {'rejected', now, record, extra, decision} {'already_done', now, record, extra} {'already_failed', …}
--          {'already_declined', …}
--          {'newer'} {'full'}
--@include late appending events inbox due ended runs after work asking
local key, due = KEYS[1], KEYS[2]
local agent, retention, member = ARGV[2], ARGV[3], ARGV[4]
local is_operator, force, reason = ARGV[5] ~= '0', ARGV[6] == '1', ARGV[7]
micros = seconds .. micros
local record, extra = unpack(redis.call('HMGET', key, 's', 'x'))

if not record then return { 'not_found' } end
local status, approval, _, expires, passed_by, _, deadline = string.match(record, RECORD)
if not status then return { 'newer' } end
if ARGV[5] == '2' and status ~= 'pending' then return { 'not_found' } end
if passed_by ~= agent and not is_operator then
  return { 'not_the_passer', now, record, extra, status == 'rejected' and redis.call('HGET', key, 'd') or nil }
end
if status == 'cancelled' then return { 'replayed', now, record, extra } end
local over = overAs(key, record, extra, now, status, expires, deadline)
if over then return over end
local goes_on = status == 'caught' and not force
--@if full
if isFull(#reason - (goes_on and 0 or redis.call('HSTRLEN', key, 'p'))) then return { 'full' } end
--@end

local outbox = openOutbox(key, key, member)
openCalls(key, member, extra)
if status == 'caught' and force then extra = leaveWork(outbox, micros, key, member, record, extra, now) end
extra = extra or ''
local is_first = status == 'caught' and not string.match(extra, ' q')
if is_first then extra = extra .. ' q' .. ms(now) end
if goes_on then
  if reason ~= '' then redis.call('HSET', key, 'c', reason) end
  record = string.gsub(record, '^caught', '2:caught')
  redis.call('HSET', key, 's', record, 'x', extra)
  if is_first then append(outbox, micros, 'cancel_requested', member, record, extra) end
else
  record, extra = becomeCancelled(outbox, key, member, record, extra, 
    ' e' .. ms(now) .. (agent == '' and '' or ' y' .. agent) .. ' k-', micros, now + retention)
  if reason ~= '' then redis.call('HSET', key, 'c', reason) end
  leaveDue(key, due, member, extra, 'cancelled', now, micros)
end
local reply = { goes_on and 'requested' or 'cancelled', now, record, extra }
--@include reply
