#!lua flags=allow-oom
-- Removes from an outbox what is in the feed, and its tenant from the index once nothing was appended for a day.
-- KEYS: 1 prefix:{tag}:o:tenant  the outbox  2 prefix:{tag}:o  the index
-- ARGV: 1 the call's deadline (ms)  2 up to which number (that one included) it is in the feed  3 tenant
--       4 how many at most, a multiple of 100
-- Replies: {'trimmed', removed}   if that is at the limit, there may be more
--@include late
local outbox, index, upto, tenant, max = KEYS[1], KEYS[2], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])
micros = seconds .. micros

local removed, more = 0, nil
repeat
  local events, count = redis.call('LRANGE', outbox, 0, 100), 0
  more = events[101]
  while count < 100 and events[count + 1] and tonumber(string.match(events[count + 1], '^%d+')) <= upto do
    count = count + 1
  end
  if count > 0 then redis.call('LTRIM', outbox, count, -1) end
  removed = removed + count
until not more or count < 100 or removed == max
local last = removed < max and upto < micros - 86400000000 and redis.call('ZSCORE', index, tenant)
if last and tonumber(last) <= upto then redis.call('ZREM', index, tenant) end
return { 'trimmed', removed }
