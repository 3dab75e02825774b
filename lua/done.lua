#!lua flags=allow-oom
-- caught -> done: the result takes the payload's place.
-- KEYS: 1 prefix:{tag}:h:tenant:id   the handoff
--       2 prefix:{tag}:due           live handoffs by when the sweep is to look at them
-- ARGV: 1 the call's deadline (ms)  2 done_token  3 the calling agent  4 retention (ms)  5 tenant:id
--       6 the digest of the schema that the result satisfies; empty if it wasn't checked  7 the result, JSON text; empty for none
-- Replies: {'done', completed}          it is done now
--          {'replayed', now, record, extra}  the same operation made it done before; nothing changed
--          {'unchecked', digest, schema}     it could be done, but the result must be checked against this schema first; nothing changed
--          {'not_found'}
--          {'expired', now, record, extra} {'rejected', now, record, extra, decision} {'cancelled', …} {'not_caught', …}
--          {'not_the_catcher', …} {'already_done', …} {'already_failed', …} {'already_declined', …}
--          {'newer'}                    a newer version wrote it; nothing changed
--          {'late'}                     the call's deadline is over; nothing changed
local key, due = KEYS[1], KEYS[2]
local token, agent, retention, member, satisfied, result = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
local now, micros = clock()
local record = redis.call('HGET', key, 's')

if late(ARGV[1], now) then return { 'late' } end
local extra = record and string.sub(record, 1, 2) == '2:' and redis.call('HGET', key, 'x')
local refusal = unheld(key, record, extra, agent, token, now)
if refusal then return refusal end
local wanted = extra and string.match(extra, ' s(%S+)')
if wanted and wanted ~= satisfied then return { 'unchecked', wanted, redis.call('HGET', key, 'r') } end

local outbox = openOutbox(key, key, member)
-- The record only grows: its first word changes, and this transition's words are appended.
record = (extra and '2:done' or 'done') .. string.sub(record, extra and 9 or 7) .. ' ' .. ms(now) .. ' ' .. token
redis.call('HSET', key, 's', record, 'p', result)
redis.call('PEXPIREAT', key, ms(now + retention))
redis.call('ZREM', due, member)
redis.call('SPUBLISH', key, 'done')
tell(outbox, micros, 'done', member, record, extra, agent)
return { 'done', now }
