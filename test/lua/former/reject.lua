#!lua flags=allow-oom
-- pending -> rejected: a person said no, and nobody ever catches it. What was passed stays to be read until the key goes.
-- KEYS: 1 prefix:{tag}:h:tenant:id   the handoff
--       2 prefix:{tag}:w:tenant      handoffs that wait for a person
--       3 prefix:{tag}:due           live handoffs by when to look at them
-- ARGV: 1 the call's deadline (ms)  2 decision_token  3 decided_by  4 retention (ms)  5 tenant:id
--       6 when what was seen was passed (ms); empty where nothing is said of that  7 the note, JSON text
-- Replies: {'rejected', decided}                     it is rejected now
--          {'replayed', decided}                     the same operation decided so before; nothing changed
--          {'not_found'} {'no_approval_required'} {'expired'} {'self_approval'}
--          {'content_changed'}                       another handoff than what was seen; nothing changed
--          {'already_decided', now, record, decision}  somebody decided before, the same or otherwise
--          {'newer'}                                 a newer version wrote it; nothing changed
--          {'late'}                                  the call's deadline is over; nothing changed
local key, waiting, due = KEYS[1], KEYS[2], KEYS[3]
local token, decided_by, retention, member, seen, note = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
local now = clock()
local record, decision = unpack(redis.call('HMGET', key, 's', 'd'))

if late(ARGV[1], now) then return { 'late' } end
local refusal = undecidable(record, decision, token, decided_by, seen, now)
if refusal then return refusal end

redis.call('HSET', key, 's', 'rejected rejected' .. string.sub(record, #'pending waiting' + 1),
  'd', now .. ' ' .. decided_by .. ' ' .. token .. ' ' .. note)
redis.call('HDEL', key, 't')
redis.call('PEXPIREAT', key, now + retention)
redis.call('ZREM', waiting, member)
redis.call('ZREM', due, member)
redis.call('SPUBLISH', key, 'rejected')
redis.call('SPUBLISH', waiting, 'rejected')
return { 'rejected', now }
