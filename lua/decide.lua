#!lua
-- pending -> pending, approved: a person said yes, so the handoff can be caught from now on. If it is for an inbox, it
-- enters the inbox once nothing blocks it (lib/after.lua). Or pending -> rejected: a person said no, so it can't be
-- caught. The payload stays readable until the key's TTL ends.
-- KEYS: 1 prefix:{tag}:h:tenant:id   the handoff
--       2 prefix:{tag}:due:tenant    its tenant's live handoffs (lib/due.lua)
-- ARGV: 1 the call's deadline (ms)  2 approved or rejected  3 decision_token  4 decided_by  5 retention (ms)
--       6 tenant:id  7 when the handoff that the person saw was passed (ms); empty if not given
--       8 the digest of what the person saw, as marks; empty if not given
--       9 whose token it came with (lib/record.lua, word U); empty for a key
--       10 who signed in by an issuer, JSON members in base64url; empty for others
--       11 what a sealed note and a digest's mark are bound to: the id of the first attempt, as far as the call
--       knows; - where nothing is sealed
--       12 for which moment the decision was signed (ms), when the handoff that was signed was passed (ms), its field
--       h, and the signature, a space before each; empty where decisions aren't signed
--       13 the note, JSON text; null for none
-- Replies: {'approved', decided} {'rejected', decided}   from now on
--          {'replayed', decided}                     the same operation decided this before; nothing changed
--          {'not_found'}
--          {'no_approval_required', now, record, extra}
--          {'already_decided', now, record, extra, decision}  there was a decision before, the same or not
--          {'cancelled', now, record, extra} {'expired', …} {'self_approval', …}
--          {'content_changed', now, record, extra}   not the handoff that the person saw; nothing changed
--          {'locked', name}          this replica doesn't have the key of this name, which made the digest
--          {'origin', first}         another one is the first attempt; nothing changed
--          {'outdated'}   not the handoff that was signed, or not the moment; nothing changed
--          {'newer'} {'full'}
--@include late appending events inbox ended runs decisions work
local key, due = KEYS[1], KEYS[2]
local verdict, token, decided_by, retention, member, seen, digests, subject, person, first, signed, note =
  ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10], ARGV[11],
  ARGV[12], ARGV[13]
local isYes = verdict == 'approved'
micros = seconds .. micros
local record, decision, extra, task, content = unpack(redis.call('HMGET', key, 's', 'd', 'x', 't', 'h'))

if not record then return { 'not_found' } end
local status, approval, created, expires, passed_by = string.match(record, RECORD)
if not status then return { 'newer' } end
if approval == 'none' then return { 'no_approval_required', now, record, extra } end
if decision then
  local at, _, made_by = string.match(decision, DECIDED)
  if made_by == token then return { 'replayed', tonumber(at) } end
  return { 'already_decided', now, record, extra, decision }
end
if status == 'cancelled' then return { 'cancelled', now, record, extra } end
if status == 'expired' or now >= tonumber(expires) then return { 'expired', now, record, extra } end
if passed_by == decided_by or extra and string.match(extra, ' U(%S+)') == subject then
  return { 'self_approval', now, record, extra }
end
local origin = originOf(extra, member)
if first ~= '-' and origin ~= first then return { 'origin', origin } end
-- An id can come back: a pass with the Idempotency-Key of a handoff that is gone makes the same id again.
local compared, sealed = string.match(content or '', '^([^.]*)%.?(.*)$')
local lock = digests ~= '' and string.match(compared, '^~(........)')
if lock and isMissing(lock) then return { 'locked', lock } end
if seen ~= '' and seen ~= created or digests ~= '' and not isAmong(digests, compared) then
  return { 'content_changed', now, record, extra }
end
local decided, signature, digest = now, '', digests ~= '' and compared or ''
if signed ~= '' then
  local moment, passed, field, text = string.match(signed, '^(%d+) (%d+) (%S*) (%S+)$')
  decided, signature = tonumber(moment), text
  local available = tonumber(extra and string.match(extra, ' a(%d+)') or 0)
  -- By when it was decided its inbox knows whether it let it in (enterOnceAvailable), so no delay may end in between.
  if decided > now or now - decided > 2000 or decided < available and available <= now or passed ~= created or
    field ~= (content or '') then
    return { 'outdated' }
  end
  digest = compared
end
--@if full
if isFull(#note + #signature) then return { 'full' } end
--@end
-- First of the writes, since these lists may be on another node.
local outbox, inbox = openOutbox(key, key, member), inboxOf(key, member, extra)
local waiting = waitingList(key, member, extra)
--@if oneredis
--@else
isHere(key, waiting)
--@end
local decisions = openDecisions(key, member)
openCalls(key, member, extra)
local ended, runs = not isYes and openEnded(key, member, extra), not isYes and openRuns(key, member, extra)
if inbox then
  if isYes then refuseWhileMoving(key, inbox) end
  leaveList(key, inbox .. ':waiting', member)
end
if inbox and isYes then
  local available = string.match(extra, ' a(%d+)')
  enterPart(inbox, member, extra, micros, nil, available and now < tonumber(available) and available,
    isBlocked(extra) and expires)
end
if isYes then
  record = string.gsub(record, 'pending waiting', 'pending approved', 1)
else
  if isBlockedRecord(record) then record = markOf(record) .. string.sub(record, 3) end
  record = string.gsub(record, 'pending waiting', 'rejected rejected', 1)
end
if digest ~= '' and sealed ~= '' then digest = sealed end
if sealed ~= '' then content = sealed end
local more = signature ~= '' and '.' .. person .. '.' .. signature or person ~= '' and '.' .. person or ''
local made_by = digest .. more == '' and token or token .. '/' .. digest .. more
redis.call('HSET', key, 's', record,
  'd', decided .. ' ' .. decided_by .. ' ' .. made_by .. ' ' .. note)
redis.call('HDEL', key, 't')
if not isYes then redis.call('PEXPIREAT', key, ms(now + retention)) end
redis.call('ZREM', waiting, member)
noteDecision(decisions, decided, micros,
  verdict .. ' ' .. decided_by .. ' ' .. passed_by .. ' - ' .. (content or '-'), person, extra, note, task or '',
  signature)
redis.pcall('SPUBLISH', key, verdict)
redis.pcall('SPUBLISH', waiting, verdict)
append(outbox, micros, verdict, member, record, extra)
if not isYes then
  --@include due after
  if ended then enterOver(ended, member, ms(now), now) end
  if runs then endRuns(runs, member, 'other', nil, now, micros) end
  leaveDue(key, due, member, extra, 'rejected', now, micros)
end
local reply = { isYes and 'approved' or 'rejected', decided }
--@include reply
