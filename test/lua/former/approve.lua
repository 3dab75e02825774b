#!lua flags=allow-oom
-- pending -> pending, approved: a person said yes, and anyone may catch it from now on.
-- KEYS: 1 prefix:{tag}:h:tenant:id   the handoff
--       2 prefix:{tag}:w:tenant      handoffs that wait for a person
-- ARGV: 1 the call's deadline (ms)  2 decision_token  3 decided_by  4 tenant:id
--       5 when what was seen was passed (ms); empty where nothing is said of that  6 the note, JSON text; null for none
-- Replies: {'approved', decided}                     it is approved now
--          {'replayed', decided}                     the same operation decided so before; nothing changed
--          {'not_found'} {'no_approval_required'} {'expired'} {'self_approval'}
--          {'content_changed'}                       another handoff than what was seen; nothing changed
--          {'already_decided', now, record, decision}  somebody decided before, the same or otherwise
--          {'newer'}                                 a newer version wrote it; nothing changed
--          {'late'}                                  the call's deadline is over; nothing changed
local key, waiting = KEYS[1], KEYS[2]
local token, decided_by, member, seen, note = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local now = clock()
local record, decision = unpack(redis.call('HMGET', key, 's', 'd'))

if late(ARGV[1], now) then return { 'late' } end
local refusal = undecidable(record, decision, token, decided_by, seen, now)
if refusal then return refusal end

redis.call('HSET', key, 's', 'pending approved' .. string.sub(record, #'pending waiting' + 1),
  'd', now .. ' ' .. decided_by .. ' ' .. token .. ' ' .. note)
redis.call('HDEL', key, 't')
redis.call('ZREM', waiting, member)
redis.call('SPUBLISH', key, 'approved')
redis.call('SPUBLISH', waiting, 'approved')
return { 'approved', now }
