#!lua
-- pending -> pending, approved: a person said yes, so it can be caught from now on. If it is for an inbox, it enters
-- that, once nothing blocks it (lib/after.lua).
-- KEYS: 1 prefix:{tag}:h:tenant:id   the handoff
--       2 prefix:{tag}:w:tenant      handoffs that wait for a person; beside it, `:decided`, what was decided last
-- ARGV: 1 the call's deadline (ms)  2 decision_token  3 decided_by  4 tenant:id
--       5 when the handoff that the person saw was passed (ms); empty if not given
--       6 the digest of what the person saw; empty if not given  7 the note, JSON text; null for none
-- Replies: {'approved', decided}                     it is approved now
--          {'replayed', decided}                     the same operation decided so before; nothing changed
--          {'not_found'}
--          {'no_approval_required', now, record, extra} {'cancelled', …} {'expired', …} {'self_approval', …}
--          {'content_changed', now, record, extra}   not the handoff that the person saw; nothing changed
--          {'already_decided', now, record, extra, decision}  somebody decided before, in the same way or not
--          {'newer'}                                 a newer version wrote it; nothing changed
--          {'full'}                                  Redis is full, and this would make it larger; nothing changed
--          {'late'}                                  the call's deadline is over; nothing changed
--@include appending events full here inbox entering decision after
local key, waiting = KEYS[1], KEYS[2]
local token, decided_by, member, seen, digest, note = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
local now, seconds, micros = clock()
micros = seconds .. micros
local record, decision, extra = unpack(redis.call('HMGET', key, 's', 'd', 'x'))

if now > ARGV[1] + 0 then return { 'late' } end
local refusal = undecidable(key, record, extra, decision, token, decided_by, seen, digest, now)
if refusal then return refusal end
--@if full
if isFull(#note) then return { 'full' } end
--@end
local decided = waiting .. ':decided'
isHere(key, decided)

-- First of the writes, since these lists may be on another node.
local outbox, inbox = openOutbox(key, key, member), inboxOf(key, member, extra)
if inbox then
  local available, expires = string.match(extra, ' a(%d+)'), string.match(record, '^%S+ %S+ %d+ (%d+)')
  refuseWhileMoving(key, inbox)
  leaveList(key, inbox .. ':waiting', member)
  enterPart(inbox, member, extra, micros, nil, available and now < tonumber(available) and available,
    isBlocked(extra) and expires)
end
local made_by = digest == '' and token or token .. '/' .. digest
record = string.gsub(record, 'pending waiting', 'pending approved', 1)
redis.call('HSET', key, 's', record,
  'd', now .. ' ' .. decided_by .. ' ' .. made_by .. ' ' .. note)
redis.call('HDEL', key, 't')
redis.call('ZREM', waiting, member)
keepDecided(decided, member, now)
redis.pcall('SPUBLISH', key, 'approved')
redis.pcall('SPUBLISH', waiting, 'approved')
append(outbox, micros, 'approved', member, record, extra)
local reply = { 'approved', now }
--@include reply
