#!lua flags=no-writes
-- Counts what an inbox has in one partition, and says since when. Changes nothing.
-- KEYS: 1 prefix:{tag}:i:tenant:inbox           what can be caught from it, by turn (lib/entering.lua)
--       2 prefix:{tag}:i:tenant:inbox:waiting   what is for it and waits for a person, by when it expires
-- ARGV: none
-- Replies: {'counted', pending, waiting, oldest}  oldest: when the oldest one entered (microseconds), nil if there is
--                        none; with mixed priorities, the oldest of the first 1,000 in the order in which they are
--                        caught
-- Uses: entering
local pending = redis.call('ZCARD', KEYS[1])
local oldest
local entries = redis.call('ZRANGE', KEYS[1], 0, 999, 'WITHSCORES')
for i = 2, #entries, 2 do
  local turn = tonumber(entries[i])
  -- Every later entry entered at its turn's time or after it.
  if oldest and turn >= oldest then break end
  local entered = turn - turn % 10 + turn % 10 * MINUTE
  oldest = math.min(oldest or entered, entered)
end
return { 'counted', pending, redis.call('ZCOUNT', KEYS[2], '(' .. ms(clock()), '+inf'), oldest }
