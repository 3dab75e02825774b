#!lua flags=allow-oom
-- pending -> caught. What frees memory in the end goes on when Redis is full (allow-oom).
-- KEYS: 1 prefix:{tag}:h:tenant:id   the handoff
--       2 prefix:{tag}:due           live handoffs by when to look at them
-- ARGV: 1 the call's deadline (ms)  2 catch_token  3 caught_by  4 work_ttl (ms)  5 retention (ms)  6 tenant:id
-- Replies: {'caught', created, payload, decision, traceparent}    it is this agent's now; the decision is nil where nobody had to
--                                                                 decide, and there is no traceparent where none was passed
--          {'replayed', created, payload, decision, traceparent}  the same operation caught it before; nothing changed
--          {'not_found'} {'expired'} {'already_caught'} {'already_done'} {'rejected'}
--          {'approval_required', left}               a person may still decide for so long (ms)
--          {'newer'}                                 a newer version wrote it; nothing changed
--          {'late'}                                  the call's deadline is over; nothing changed
local key, due = KEYS[1], KEYS[2]
local token, caught_by, work_ttl, retention, member = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local now = clock()
local record, payload, decision = unpack(redis.call('HMGET', key, 's', 'p', 'd'))

if late(ARGV[1], now) then return { 'late' } end
if not record then return { 'not_found' } end
local status, approval, created, expires, _, passed, until_done, by, made_by = string.match(record, RECORD)
if not status then return { 'newer' } end
if status == 'caught' then
  if now >= tonumber(until_done) then return { 'expired' } end
  if by ~= caught_by or made_by ~= token then return { 'already_caught' } end
  return { 'replayed', tonumber(created), payload, decision, string.match(passed, TRACE) }
end
if status == 'done' then return { 'already_done' } end
if status ~= 'pending' then return { status } end
if now >= tonumber(expires) then return { 'expired' } end
if approval == 'waiting' then return { 'approval_required', expires - now } end

local deadline = now + work_ttl
-- The record only grows: its first word changes, and this transition's words follow.
redis.call('HSET', key, 's', 'caught' .. string.sub(record, 8) .. ' ' .. ms(now) .. ' ' .. ms(deadline) .. ' ' .. caught_by .. ' ' .. token)
redis.call('PEXPIREAT', key, ms(deadline + retention))
-- Where the work's deadline is the later one, the sweep finds out: it comes by too early then, looks at the record, and moves it on.
if deadline < tonumber(expires) then redis.call('ZADD', due, ms(deadline), member) end
redis.call('SPUBLISH', key, 'caught')
return { 'caught', tonumber(created), payload, decision, string.match(passed, TRACE) }
