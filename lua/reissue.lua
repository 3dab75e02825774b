#!lua
-- caught -> cancelled, or no change of an ended handoff: its passer, or an operator, makes a successor, which gets the
-- payload.
-- KEYS: 1 prefix:{tag}:h:tenant:id  the handoff  2 prefix:{tag}:due:tenant  its tenant's live handoffs (lib/due.lua)
-- ARGV: 1 the call's deadline (ms)  2 the calling agent  3 retention (ms)  4 tenant:id
--       5 1 for an operator, who may reissue any handoff; 2 for an operator who takes none from its catcher; else 0
--       6 the agents whose live handoffs are limited, each between two spaces; absent if there are none
-- Replies: {'reissued', successor, record, extra, taken}  its new successor, with the successor's record; taken is 1
--                        if it was taken from its catcher, else 0
--          {'replayed', successor, record, extra}  it had this successor before; nothing changed
--          {'not_found'}  or, for ARGV 5 = 2, it is caught
--          {'not_the_passer', now, record, extra, decision} {'not_caught', now, record, extra} {'expired', …}
--          {'already_done', …} {'rejected', now, record, extra, decision} {'cancelled', now, record, extra}
--          {'newer'}
--@include late appending events inbox due ended runs after work asking files successor
local key, due = KEYS[1], KEYS[2]
local agent, retention, member = ARGV[2], tonumber(ARGV[3]), ARGV[4]
micros = seconds .. micros
local record, extra, decision, fault = unpack(redis.call('HMGET', key, 's', 'x', 'd', 'e'))

if not record then return { 'not_found' } end
local status, approval, _, expires, passed_by, _, deadline = string.match(record, RECORD)
if not status then return { 'newer' } end
if passed_by ~= agent and ARGV[5] == '0' then
  return { 'not_the_passer', now, record, extra, status == 'rejected' and decision or nil }
end
local successor = extra and string.match(extra, ' i(%S+)')
if successor then
  local next_key = string.sub(key, 1, #key - #successor) .. successor
  local found = redis.call('HMGET', next_key, 's', 'x')
  if not found[1] and not isHere(key, next_key) then return { 'not_found' } end
  return { 'replayed', successor, found[1], found[2] }
end
if status == 'pending' and now < tonumber(expires) then return { 'not_caught', now, record, extra } end
-- An uncaught handoff that was for no inbox has no payload any more, nor has one that an older version's sweep freed.
local isUncaught = status == 'pending' or status == 'expired' and deadline == ''
if isUncaught and not (inboxOf(key, member, extra) and redis.call('HSTRLEN', key, 'p') > 0) then
  return { 'expired', now, record, extra }
end
if status == 'done' then return { 'already_done', now, record, extra } end
if status == 'rejected' then return { 'rejected', now, record, extra, decision } end
if status == 'cancelled' then return { 'cancelled', now, record, extra } end

local isTaken = status == 'caught' and now < tonumber(extra and string.match(extra, ' h(%d+)') or deadline)
if isTaken and ARGV[5] == '2' then return { 'not_found' } end
-- It may have ended before its passer got a limit. Its successor counts.
if string.find(ARGV[6] or '', ' ' .. passed_by .. ' ', 1, true) then extra = withAgentsRun(extra, passed_by) end
local attempt = {
  outbox = openOutbox(key, key, member), key = key, member = member, record = record, extra = extra,
  retention = retention, now = now, micros = micros, kept = fault and { 'e', fault } or {},
  begins = not isTaken and (status ~= 'caught' or not pauseBehind(extra))
}
openCalls(key, member, extra)
local next = succeed(attempt, 0)
-- The sweep may not have been there yet.
if status == 'pending' then
  leaveInbox(key, member, extra, approval)
  if approval == 'waiting' then redis.call('ZREM', waitingList(key, member, extra), member) end
end
if status ~= 'caught' and status ~= 'pending' then leaveFailed(key, member, extra) end
if isTaken then
  endAttempt(attempt, 'cancelled', ' e' .. ms(now) .. ' y' .. agent .. ' k-', next)
else
  endAttempt(attempt, (status == 'caught' or status == 'pending') and 'expired' or status, '', next)
end
setDue(key, due, next.due, next.member, now)
-- A handoff that had ended before stays there until its dependents are released: for them this attempt was the last
-- one. A handoff that waited for others stays until its notes at those are removed: its successor has notes of its own.
local waited = leftOpen(extra, status) > 0
if waited and status == 'pending' then
  setDue(key, due, now, member, now)
elseif status == 'caught' or status == 'pending' or not hasDependents(extra) and not waited then
  redis.call('ZREM', due, member)
end
local reply = { 'reissued', next.id, next.record, next.extra, isTaken and 1 or 0 }
--@include reply
