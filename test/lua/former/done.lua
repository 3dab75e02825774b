#!lua flags=allow-oom
-- caught -> done: the result takes the payload's place.
-- KEYS: 1 prefix:{tag}:h:tenant:id   the handoff
--       2 prefix:{tag}:due           live handoffs by when to look at them
-- ARGV: 1 the call's deadline (ms)  2 done_token  3 the agent that asks  4 retention (ms)  5 tenant:id
--       6 the result, JSON text; empty for none
-- Replies: {'done', completed}          it is done now
--          {'replayed', completed}      the same operation made it done before; nothing changed
--          {'not_found'} {'expired'} {'rejected'} {'not_caught'} {'not_the_catcher'}
--          {'already_done', completed}  another operation did
--          {'newer'}                    a newer version wrote it; nothing changed
--          {'late'}                     the call's deadline is over; nothing changed
local key, due = KEYS[1], KEYS[2]
local token, agent, retention, member, result = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local now = clock()
local record = redis.call('HGET', key, 's')

if late(ARGV[1], now) then return { 'late' } end
if not record then return { 'not_found' } end
local status, _, _, expires, _, _, deadline, caught_by, _, finished = string.match(record, RECORD)
if not status then return { 'newer' } end
if status == 'pending' and now >= tonumber(expires) then return { 'expired' } end
if status == 'pending' then return { 'not_caught' } end
if status == 'expired' or status == 'rejected' then return { status } end
if status == 'caught' and now >= tonumber(deadline) then return { 'expired' } end
if caught_by ~= agent then return { 'not_the_catcher' } end
if status == 'done' then
  local completed, made_by = string.match(finished, DONE)
  return { made_by == token and 'replayed' or 'already_done', tonumber(completed) }
end

-- The record only grows: its first word changes, and this transition's words follow.
redis.call('HSET', key, 's', 'done' .. string.sub(record, 7) .. ' ' .. ms(now) .. ' ' .. token, 'p', result)
redis.call('PEXPIREAT', key, ms(now + retention))
redis.call('ZREM', due, member)
redis.call('SPUBLISH', key, 'done')
return { 'done', now }
