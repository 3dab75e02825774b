#!lua
-- A webhook gets another secret: what is derived from the next generation.
-- KEYS: 1 prefix:{tag}:hook:tenant:id   the webhook
-- ARGV: 1 the call's deadline (ms)  2 token  3 for how long the old secret signs as well (ms)
-- Replies: {'rotated', fields}  as they are now; also when the same operation asks again
--          {'not_found'}        there is no such webhook
--          {'late'}             the call's deadline is over; nothing changed
local key, token, grace = KEYS[1], ARGV[2], tonumber(ARGV[3])
local now = clock()
local found = redis.call('HMGET', key, 'generation', 'rotated')

if now > ARGV[1] + 0 then return { 'late' } end
if not found[1] then return { 'not_found' } end

if found[2] ~= token then
  redis.call('HSET', key, 'generation', ms(found[1] + 1), 'rotated', token, 'old_until', ms(now + grace))
end
return { 'rotated', redis.call('HGETALL', key) }
