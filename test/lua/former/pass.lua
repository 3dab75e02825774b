#!lua
-- (none) -> pending.
-- KEYS: 1 prefix:{tag}:h:tenant:id   the handoff
--       2 prefix:{tag}:due           live handoffs by when to look at them
--       3 prefix:{tag}:w:tenant      handoffs that wait for a person; given exactly when one is to approve
-- ARGV: 1 the call's deadline (ms)  2 pass_token, with /traceparent where there is one  3 passed_by  4 expires_in (ms)  5 retention (ms)
--       6 tenant:id                  7 how much of the task, from its quote on, the list of what waits keeps (bytes)  8 the payload
-- Replies: {'passed', created, expires}    it is pending now
--          {'replayed', created, expires}  the same operation made it before; nothing changed
--          {'reused'}                      another operation made it: the Idempotency-Key came with another body
--          {'newer'}                       a newer version made it; nothing changed
--          {'late'}                        the call's deadline is over; nothing changed
local key, due, waiting = KEYS[1], KEYS[2], KEYS[3]
local token, passed_by, expires_in, retention, member = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local listed, payload = ARGV[7], ARGV[8]
local now = clock()
local record = redis.call('HGET', key, 's')

if late(ARGV[1], now) then return { 'late' } end
if record then
  local _, _, created, expires, _, made_by = string.match(record, RECORD)
  if not made_by then return { 'newer' } end
  -- Asked again it comes with a trace of its own, and is the same operation; the first one's stays.
  if string.match(made_by, OPERATION) ~= string.match(token, OPERATION) then return { 'reused' } end
  return { 'replayed', tonumber(created), tonumber(expires) }
end

local expires = now + expires_in
local until_expiry = ms(expires)
local approval = waiting and 'waiting' or 'none'
redis.call('HSET', key, 's', 'pending ' .. approval .. ' ' .. ms(now) .. ' ' .. until_expiry .. ' ' .. passed_by .. ' ' .. token, 'p', payload)
redis.call('PEXPIREAT', key, ms(expires + retention))
redis.call('ZADD', due, until_expiry, member)
if waiting then
  -- The payload begins with "task": and the task, a JSON string; what is kept of it is one too.
  redis.call('HSET', key, 't', string.sub(payload, 8, 7 + listed) .. '"')
  redis.call('ZADD', waiting, now, member)
  redis.call('SPUBLISH', waiting, 'pending')
end
return { 'passed', now, expires }
