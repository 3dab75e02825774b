#!lua
-- Notes who waits at a replica for a tenant's inboxes, and who asked there lately. A note of a replica that died counts
-- no more after a while, and is gone then.
-- KEYS: 1 prefix:{tag}:l:tenant           the replicas that noted something, by when (ms)
--       2 prefix:{tag}:l:tenant:replica   what this one notes
-- ARGV: 1 the call's deadline (ms)  2 the replica  3 for how long a note counts (ms)
--       4 what it notes (store/listeners.ts); empty if there is nothing any more
-- Replies: {'noted'}
--@include late
local replicas, note, replica, lasts, text = KEYS[1], KEYS[2], ARGV[2], ARGV[3], ARGV[4]
if text == '' then
  redis.call('ZREM', replicas, replica)
  redis.call('DEL', note)
else
  redis.call('ZADD', replicas, formatted, replica)
  redis.call('SET', note, text, 'PX', lasts)
  redis.call('PEXPIREAT', replicas, ms(now + lasts))
  local gone = redis.call('ZCOUNT', replicas, '-inf', ms(now - lasts))
  if gone > 0 then redis.call('ZREMRANGEBYRANK', replicas, 0, gone - 1) end
end
return { 'noted' }
