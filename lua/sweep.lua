#!lua flags=allow-oom
-- pending -> expired, caught -> expired: what is due in one partition, a bounded batch a call. It frees the payloads, and leaves
-- the keys for as long beyond the deadline as they are to be read.
-- KEYS: 1 prefix:{tag}:due   live handoffs by when to look at them
-- ARGV: 1 the call's deadline (ms)  2 prefix:{tag}:  3 how many at most  4 retention (ms)
-- Replies: {'swept', looked_at, expired}  looked_at at the limit: there may be more
--          {'late'}                       the call's deadline is over; nothing changed
-- The handoffs' keys are made here, from the members: all carry the partition's tag, so all lie in the slot of KEYS[1].
local due = KEYS[1]
local prefix, limit, retention = ARGV[2], ARGV[3], ARGV[4]
local now = clock()
local members = redis.call('ZRANGE', due, '-inf', now, 'BYSCORE', 'LIMIT', 0, limit)

if late(ARGV[1], now) then return { 'late' } end

local expired = 0
for _, member in ipairs(members) do
  local key = prefix .. 'h:' .. member
  local record = redis.call('HGET', key, 's')
  local status, approval, expires, until_done, _
  if record then status, approval, _, expires, _, _, until_done = string.match(record, RECORD) end
  local deadline = nil
  if status == 'pending' then deadline = expires end
  if status == 'caught' then deadline = until_done end
  if deadline and tonumber(deadline) > now then
    -- The index was behind the record, as catch leaves it; the record is the truth.
    redis.call('ZADD', due, deadline, member)
  else
    if deadline then
      redis.call('HSET', key, 's', 'expired' .. string.sub(record, #status + 1))
      redis.call('HDEL', key, 'p', 't')
      redis.call('PEXPIREAT', key, ms(deadline + retention))
      redis.call('SPUBLISH', key, 'expired')
      expired = expired + 1
    end
    redis.call('ZREM', due, member)
    if not record or approval == 'waiting' then
      local waiting = prefix .. 'w:' .. string.match(member, '^[^:]+')
      redis.call('ZREM', waiting, member)
      redis.call('SPUBLISH', waiting, 'expired')
    end
  end
end
return { 'swept', #members, expired }
