#!lua
-- pending -> rejected: a person said no, so nobody can catch it. The payload stays readable until the key's TTL ends.
-- KEYS: 1 prefix:{tag}:h:tenant:id   the handoff
--       2 prefix:{tag}:w:tenant      handoffs that wait for a person; beside it, `:decided`, what was decided last
--       3 prefix:{tag}:due:tenant    its tenant's live handoffs (lib/due.lua)
-- ARGV: 1 the call's deadline (ms)  2 decision_token  3 decided_by  4 retention (ms)  5 tenant:id
--       6 when the handoff that the person saw was passed (ms); empty if not given
--       7 the digest of what the person saw; empty if not given  8 the note, JSON text
-- Replies: {'rejected', decided}                     it is rejected now
--          {'replayed', decided}                     the same operation decided so before; nothing changed
--          {'not_found'}
--          {'no_approval_required', now, record, extra} {'cancelled', …} {'expired', …} {'self_approval', …}
--          {'content_changed', now, record, extra}   not the handoff that the person saw; nothing changed
--          {'already_decided', now, record, extra, decision}  somebody decided before, in the same way or not
--          {'newer'}                                 a newer version wrote it; nothing changed
--          {'full'}                                  Redis is full, and this would make it larger; nothing changed
--          {'late'}                                  the call's deadline is over; nothing changed
--@include appending events full here inbox decision entering due after pending cancelled releasing ended
local key, waiting, due = KEYS[1], KEYS[2], KEYS[3]
local token, decided_by, retention, member, seen, digest, note =
  ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8]
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

local outbox, inbox = openOutbox(key, key, member), inboxOf(key, member, extra)
if inbox then leaveList(key, inbox .. ':waiting', member) end
local made_by = digest == '' and token or token .. '/' .. digest
record = string.gsub(string.gsub(record, 'pending waiting', 'rejected rejected', 1), '^3', '2')
redis.call('HSET', key, 's', record,
  'd', now .. ' ' .. decided_by .. ' ' .. made_by .. ' ' .. note)
redis.call('HDEL', key, 't')
redis.call('PEXPIREAT', key, ms(now + retention))
redis.call('ZREM', waiting, member)
keepDecided(decided, member, now)
redis.pcall('SPUBLISH', key, 'rejected')
redis.pcall('SPUBLISH', waiting, 'rejected')
append(outbox, micros, 'rejected', member, record, extra)
leaveDue(key, due, member, extra, 'rejected', now, micros)
local reply = { 'rejected', now }
--@include reply
